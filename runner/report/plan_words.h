// SPDX-License-Identifier: MIT
// What the parts of a step are called wherever people read of them. What a plan holds is plan's.
#pragma once

#include <string_view>

#include "plan/step_plan.h"

namespace stepgate {

std::string_view in_words(Phase);       // "data wait"
std::string_view in_words(StreamName);  // "compute"

}  // namespace stepgate
