// SPDX-License-Identifier: MIT
// Names of the parts of a plan in reports, traces and profilers.
#pragma once

#include <string_view>

#include "plan/step_plan.h"

namespace stepgate {

std::string_view name_of(MemoryKind);  // "pageable"
std::string_view name_of(Purpose);     // "optimizer state"

}  // namespace stepgate
