// SPDX-License-Identifier: MIT
// The operations of a step put together by phase and layer, so that a step of a thousand operations
// fits a screen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

// Operations in a row, inclusive.
struct OperationGroup {
  Phase phase = Phase::forward;  // of the first that does work
  std::string name;              // "layer 3", "layer 0 to 7", "copy the batch"
  std::size_t first = 0;
  std::size_t last = 0;
};

// In the order of the host, at most `most` of them. What the names have before ": " is one group;
// allocations, releases, events and waits belong to the work beside them. Where that is too much,
// neighbours of one phase are put together first.
std::vector<OperationGroup> operation_groups(const StepPlan&, std::size_t most);

}  // namespace stepgate
