// SPDX-License-Identifier: MIT
// Notes to the author of a scenario that are not errors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/text/diagnostic.h"
#include "scenario/scenario.h"

namespace stepgate {

// Warnings with place and hint: about a limit of exactly 1x on times, overrides of a loader or of a
// wait that do nothing, and about a scenario without
// a counted assertion, which cannot say why a step is slower. `counted` is an assertion that is
// true of the scenario's plans, to be suggested; empty where their counts are equal.
std::vector<Diagnostic> lint(const Scenario&, const std::string& counted);

// Warns of variants that are the same step as an earlier one, unless an assertion names both, since
// it may claim that they are equal.
std::vector<Diagnostic> identical_variants(const Scenario&);

// Warns of what variants set and `overrides`, texts such as "batch.size=8", replace: variants that
// differ in nothing else are then one step.
std::vector<Diagnostic> replaced_settings(const Scenario&, std::span<const std::string> overrides);

}  // namespace stepgate
