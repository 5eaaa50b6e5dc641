// SPDX-License-Identifier: MIT
// Finds the operation that releases the memory that another one allocated.
#pragma once

#include <utility>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

// Pairs of operations that allocate and release a slot of a buffer, and allocations without a
// release. They are indices into StepPlan::operations.
struct Stays {
  std::vector<std::pair<int, int>> pairs;
  std::vector<int> unmatched;
};

// The stays of every buffer, by its index, from an Allocate to its Release. Found in one pass over
// the operations, since a plan may have tens of thousands of both.
std::vector<Stays> stays_allocated(const StepPlan&);
// The stays of every buffer from a RegisterHost to its UnregisterHost.
std::vector<Stays> stays_registered(const StepPlan&);

// Whether every step frees all that it allocates. Then no buffer that a step allocates is live
// between two steps, and no host memory is registered.
bool gives_back_everything(const StepPlan&);

}  // namespace stepgate
