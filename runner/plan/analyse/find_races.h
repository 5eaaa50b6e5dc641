// SPDX-License-Identifier: MIT
// Is everything that touches the same bytes ordered? Decided from the plan alone, for the steady
// step.
#pragma once

#include <optional>
#include <string>

#include "plan/step_plan.h"

namespace stepgate {

// Finds two operations that access the same bytes without an order, where at least one writes.
// Returns the description of the first pair. issue_order.h defines what counts as an order.
std::optional<std::string> find_race(const StepPlan&);

}  // namespace stepgate
