// SPDX-License-Identifier: MIT
// Which bytes an operation reads and writes, and when: what find_races, lifetimes and pictures are
// made from.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

struct BufferAccess {
  BufferUse use;
  Access access = Access::read;
};

// In the order of the operands. Allocation and release count as writes of the whole slot,
// pinning as well; what an operation only keeps counts as read.
std::vector<BufferAccess> accesses_of(const StepPlan&, const Operation&);

// Fault of a launch by its kernel's declaration: an operand too few or too many, one that is not as
// large as declared, or one that is written over another that it may not replace. Nothing where all
// is well.
std::optional<std::string_view> fault_of(const LaunchKernel&);

// The bytes that the launch moves and the arithmetic that it does.
KernelWork work_of(const LaunchKernel&);

// One end of the copy is ordinary host memory, so the host stays in the call until it has been read
// or written.
bool is_pageable(const StepPlan&, const CopyBytes&);

// Device memory that holds something within a step only, under a name of the turn's own.
inline bool is_temporary(const Buffer& buffer) {
  return buffer.memory == MemoryKind::device &&
         (buffer.purpose == Purpose::activations || buffer.purpose == Purpose::staging);
}

bool uses_managed_memory(const StepPlan&);

// It launches a kernel that needs workspace, which no operation names.
bool uses_workspace(const Operation&);

// The operation acts for this step, where none before `first_step` is run.
inline bool acts_for(const Operation& operation, std::int64_t step, std::int64_t first_step = 0) {
  return step >= first_step &&
         (operation.every == 1 || (step + 1) % operation.every == operation.turn);
}

// The step of one turn of the batches alone, as if all were like it, and that of the largest batch;
// the plan itself where batches take no turns. Buffers that last over steps have no Allocate there.
StepPlan turn_alone(const StepPlan&, std::int64_t turn);
StepPlan largest_turn(const StepPlan&);

// The furthest that any operation looks ahead; the host starts this many steps before step 0.
int prefetch_depth(const StepPlan&);

}  // namespace stepgate
