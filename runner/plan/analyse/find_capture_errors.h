// SPDX-License-Identifier: MIT
// Can the captured part of a step become a CUDA graph? Decided from the plan alone.
#pragma once

#include <optional>
#include <string>

#include "plan/step_plan.h"

namespace stepgate {

// Describes the first captured operation that a graph cannot contain, with the reason. nullopt if
// there is none.
std::optional<std::string> find_capture_error(const StepPlan&);

}  // namespace stepgate
