// SPDX-License-Identifier: MIT
// Audits single launches of a step, on whatever device: a launch runs on the step's own operands
// with its outputs spoilt, then the catalogue's kernel of the same name runs on the same operands,
// and what both leave is compared as in trials of kernels (kernels/trial).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/record/fields.h"
#include "plan/step_plan.h"

namespace stepgate {

struct LaunchAudit {
  std::int64_t step = 0;
  std::string operation;   // its name in the plan
  std::string kernel;      // "layer_norm"
  std::string difference;  // "'y': 64 of 4096 numbers are off, ..."; empty: there is none
};
template <>
inline constexpr auto fields_of<LaunchAudit> =
    fields<&LaunchAudit::step, &LaunchAudit::operation, &LaunchAudit::kernel,
           &LaunchAudit::difference>;

// Whether the kernel is none of the catalogue, but another one with the name of one.
bool is_replaced(const LaunchKernel&);

// Chooses operations to audit among the launches that act for a step: one for each kernel that
// replaces one of the catalogue, or of a plan without such kernels one for each kernel. Ascending.
// Operations `by_us`, ascending, are launched by the catalogue's kernel after all.
// Launches with gigabytes of operands are left out, and so are those of a graph that does more than
// launch, copy, fill and order its work: such a graph cannot run one operation after the other.
std::vector<int> launches_to_audit(const StepPlan&, std::int64_t step, std::uint64_t seed,
                                   std::span<const int> by_us = {});

// A launch whose operands are ready for it.
struct AuditedLaunch {
  const LaunchKernel& launch;
  std::vector<std::byte*> operands;  // where the launch finds them
  // Copies bytes between memory of this process and the operands. Returns when all earlier work is
  // done, and the copy.
  std::function<void(void* to, const void* from, std::size_t bytes)> copy;
  std::function<void()> run_own;        // launches the step's kernel on the operands
  std::function<void()> run_catalogue;  // launches that of the catalogue on them
};

// Returns the difference in words; empty where there is none. Leaves the operands as the step's own
// kernel leaves them. Operands that hold clocks of the device are not compared.
std::string difference_by_audit(const AuditedLaunch&);

}  // namespace stepgate
