// SPDX-License-Identifier: MIT
// Checks that operations that access the same bytes are ordered. Needs only the plan, and considers
// the steady state.
#pragma once

#include <optional>
#include <string>

#include "plan/step_plan.h"

namespace stepgate {

// Finds two operations that access the same bytes without an order, where at least one writes.
// Returns the description of the first pair. issue_order.h defines what counts as an order.
std::optional<std::string> find_race(const StepPlan&);

}  // namespace stepgate
