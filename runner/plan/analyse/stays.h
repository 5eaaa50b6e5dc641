// SPDX-License-Identifier: MIT
// Which operation gives back what another one has taken.
#pragma once

#include <utility>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

// Pairs of operations that take and give back a slot of a buffer, and takes that nobody gives back,
// as indices into StepPlan::operations.
struct Stays {
  std::vector<std::pair<int, int>> pairs;
  std::vector<int> unmatched;
};

// From an Allocate to its Release.
Stays stays_allocated(const StepPlan&, int buffer);
// From a RegisterHost to its UnregisterHost.
Stays stays_registered(const StepPlan&, int buffer);

}  // namespace stepgate
