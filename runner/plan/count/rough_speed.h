// SPDX-License-Identifier: MIT
// Rough speeds of a data-centre GPU and its host, the same for every device. They suffice to decide
// what limits a kernel and whether rare work matters. Device profiles have measured speeds.
#pragma once

#include "plan/plan_facts.h"
#include "plan/step_plan.h"

namespace stepgate {

constexpr double rough_bytes_per_second = 4e12;

double rough_flops_per_second(DType);

// Seconds that a kernel needs for its arithmetic, its bytes, and its dependent loads. The largest
// one limits the kernel.
struct RoughKernelTime {
  double math = 0;
  double memory = 0;
  double latency = 0;
};

RoughKernelTime rough_time_of(const LaunchKernel&);

// Returns what limits a kernel; a kernel that spins is limited by arithmetic.
KernelLimit limit_of(const LaunchKernel&);

// An upper estimate of the seconds by which the operation lengthens a step that hides none of it.
// For operations that act only in some steps.
double rough_cost_of(const StepPlan&, const Operation&);

}  // namespace stepgate
