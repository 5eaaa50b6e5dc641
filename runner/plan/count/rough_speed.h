// SPDX-License-Identifier: MIT
// How fast a data-centre GPU and its host are, roughly: enough to say what a kernel is limited by
// and whether rare work matters, and so the same for every device. Measured speeds are those of
// device profiles.
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

// A kernel that spins is limited by arithmetic.
KernelLimit limit_of(const LaunchKernel&);

// Seconds, rather too many, by which the operation lengthens a step that hides none of it. For
// operations that act only in some steps.
double rough_cost_of(const StepPlan&, const Operation&);

}  // namespace stepgate
