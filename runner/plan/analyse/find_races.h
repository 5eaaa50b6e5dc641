// SPDX-License-Identifier: MIT
// Is everything that touches the same bytes ordered? Decided from the plan alone, for the steady
// step.
#pragma once

#include <optional>
#include <string>

#include "plan/step_plan.h"

namespace stepgate {

// The first pair of operations that touch the same bytes, at least one of them writing, with
// nothing that orders them; as a sentence that names both. issue_order.h says what counts as an
// order.
std::optional<std::string> find_race(const StepPlan&);

}  // namespace stepgate
