// SPDX-License-Identifier: MIT
// Words about a verdict that all reports for people share, whatever they are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "judge/verdict/verdict.h"

namespace stepgate {

// "1 round", "2 rounds".
std::string counted_in_words(std::int64_t count, std::string_view what);

// The numbers of the variants: a row of titles, then one each; columns that nothing is known of are
// left out. Empty without variants.
std::vector<std::vector<std::string>> variant_rows(const std::vector<VariantSummary>&);

// Says what the run cost: " after 6 rounds of 2 loads, 0.93 GPU seconds"; empty where nothing was
// measured.
std::string cost_in_words(const Verdict&);

// How far it can be trusted: "; of this process: at most 1 % of runs ...", or nothing.
std::string rates_in_words(const Verdict&);

}  // namespace stepgate
