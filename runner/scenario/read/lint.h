// SPDX-License-Identifier: MIT
// Notes to the author of a scenario that are not errors.
#pragma once

#include <string>
#include <vector>

#include "base/text/diagnostic.h"
#include "scenario/scenario.h"

namespace stepgate {

// Warnings, with place and way out: of a limit of exactly 1x on times, and of a scenario without a
// counted assertion, which says how much and never why. `counted` is such an assertion that is true
// of its plans; empty where these count the same.
std::vector<Diagnostic> lint(const Scenario&, const std::string& counted);

// Variants that are the same step as an earlier one, unless an assertion names both: a tie is a
// claim.
std::vector<Diagnostic> identical_variants(const Scenario&);

}  // namespace stepgate
