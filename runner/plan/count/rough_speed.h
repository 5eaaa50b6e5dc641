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

// In seconds: what the arithmetic of a kernel takes alone, what its bytes do, and what its loads do
// that wait for each other. The largest one limits it.
struct RoughKernelTime {
  double math = 0;
  double memory = 0;
  double latency = 0;
};

RoughKernelTime rough_time_of(const LaunchKernel&);

// A kernel that spins is limited by arithmetic.
KernelLimit limit_of(const LaunchKernel&);

// In seconds, and rather too much: by how much the operation makes a step longer in which nothing
// hides it. For what happens in some steps only.
double rough_cost_of(const StepPlan&, const Operation&);

}  // namespace stepgate
