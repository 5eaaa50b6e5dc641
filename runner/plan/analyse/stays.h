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

// The stays of every buffer, by its index, from an Allocate to its Release. One walk over the
// operations finds them: a plan may have tens of thousands of both.
std::vector<Stays> stays_allocated(const StepPlan&);
// From a RegisterHost to its UnregisterHost.
std::vector<Stays> stays_registered(const StepPlan&);

// Whether every step gives back all that it takes: between two steps nothing is there that comes
// and goes, and no host memory is registered.
bool gives_back_everything(const StepPlan&);

}  // namespace stepgate
