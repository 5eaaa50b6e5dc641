// SPDX-License-Identifier: MIT
// Rules that tie two knobs of one variant together. The field table has the ranges of single knobs,
// and plans refuse what cannot be built as a step.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "scenario/scenario.h"

namespace stepgate {

// The place where each field was last set by a file or argument, by dotted name.
using SettingPlaces = std::map<std::string_view, Place>;

// Adds a diagnostic for every rule that the knobs break, at the wrong setting, or at the variant
// where that setting is a default.
void check_knobs(const Knobs&, const SettingPlaces&, const Place& variant,
                 std::vector<Diagnostic>& diagnostics);

}  // namespace stepgate
