// SPDX-License-Identifier: MIT
// "did you mean ...?": the candidate that a mistyped word is closest to. The caller offers
// candidates and prints the question.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

// The candidate with the fewest edits from the word, the first if several are equally near. An edit
// inserts, deletes or replaces a character or swaps neighbours; case is ignored. nullopt when even
// the nearest candidate needs more edits than a third of the word's length.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

// Returns "did you mean 'pinned'?" when a candidate is near, otherwise the hint `otherwise`.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates,
                         std::string otherwise);

// Joins words with commas and "or": "a", "a or b", "a, b or c".
std::string either(const std::vector<std::string>& words);

}  // namespace stepgate
