// SPDX-License-Identifier: MIT
// Parses the text of an assertion to an Expectation. The judge decides whether it is true.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/assertions/expectation.h"

namespace stepgate {

// `start` is where the assertion's first character stands in its file, `variants` are the names
// that it may use. A single empty name allows metrics that stand alone, as "polls_per_step == 0".
// Nothing, and one more diagnostic placed at the word at fault, when the assertion is not one of
// the grammar of expectation.h, names what does not exist, compares different dimensions (bytes
// with seconds), or can never be decided.
std::optional<Expectation> parse_expectation(std::string_view name, std::string_view text,
                                             const Place& start,
                                             std::span<const std::string_view> variants,
                                             std::vector<Diagnostic>& diagnostics);

}  // namespace stepgate
