// SPDX-License-Identifier: MIT
// One knob set on the command line. Which variants it holds for is read_scenario.h's.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "scenario/read/scenario_draft.h"

namespace stepgate {

// "batch.size=128", as a command line gives it; nothing, and one more diagnostic, when it is none.
std::optional<Setting> read_override(std::string_view argument,
                                     std::vector<Diagnostic>& diagnostics);

}  // namespace stepgate
