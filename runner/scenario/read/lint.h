// SPDX-License-Identifier: MIT
// Notes to the author of a scenario about what is no fault of it.
#pragma once

#include <string>
#include <vector>

#include "scenario/scenario.h"
#include "support/text/diagnostic.h"

namespace stepgate {

// Warnings, with place and way out: of a limit of exactly 1x on times, and of a scenario without a
// counted sentence, which says how much and never why. `counted` is such a sentence that is true of
// its plans; empty where these count the same.
std::vector<Diagnostic> lint(const Scenario&, const std::string& counted);

// Variants that are the same step as an earlier one, unless a sentence names both: a tie is a
// claim.
std::vector<Diagnostic> identical_variants(const Scenario&);

}  // namespace stepgate
