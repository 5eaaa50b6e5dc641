// SPDX-License-Identifier: MIT
// One knob set on the command line. read_scenario.h says which variants it holds for.
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
