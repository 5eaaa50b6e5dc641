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

// `start` is the place of the assertion's first character in its file; `variants` are the names
// that it may use. Returns nullopt, and adds a diagnostic at the wrong word, when the assertion
// violates the grammar of expectation.h, names something unknown, compares different dimensions
// (bytes with seconds), or can never be decided.
std::optional<Expectation> parse_expectation(std::string_view name, std::string_view text,
                                             const Place& start,
                                             std::span<const std::string_view> variants,
                                             std::vector<Diagnostic>& diagnostics);

}  // namespace stepgate
