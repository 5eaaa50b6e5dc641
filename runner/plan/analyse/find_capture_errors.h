// SPDX-License-Identifier: MIT
// Can the captured part of a step become a CUDA graph? Decided from the plan alone.
#pragma once

#include <optional>
#include <string>

#include "plan/step_plan.h"

namespace stepgate {

// The first captured operation that a graph cannot hold, as a sentence with the reason. Nothing
// when all can be captured or none is.
std::optional<std::string> find_capture_error(const StepPlan&);

}  // namespace stepgate
