// SPDX-License-Identifier: MIT
// "did you mean ...?": the candidate that a mistyped word is closest to. The caller offers
// candidates and prints the question.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stepgate {

// The candidate with the fewest edits (insert, delete, replace, swap neighbours; capitals are none)
// from the word, the first of equals; nothing when even that one is more than a third of the word
// away.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

// "did you mean 'pinned'?" when a candidate is near, otherwise the hint given instead.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates,
                         std::string otherwise);

}  // namespace stepgate
