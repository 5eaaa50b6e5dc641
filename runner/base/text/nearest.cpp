// SPDX-License-Identifier: MIT
// Optimal string alignment distance: Levenshtein's with the swap of two neighbours as one edit.
// Capitals are no edit: SwiGLU is near swiglu.
#include "base/text/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/text/ascii.h"

namespace stepgate {
namespace {

// No name that we suggest is longer, and computing the distance takes quadratic time.
constexpr std::size_t longest_word = 64;
constexpr std::size_t shortest_part = 4;

std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  const auto same = [&](std::size_t i, std::size_t j) {
    return small_letter(a[i]) == small_letter(b[j]);
  };
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (same(i - 1, j - 1) ? 0 : 1);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) {
        current[j] = std::min(current[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, current);
  }
  return last[b.size()];
}

// Parts of names are joined by '_': step_ms begins step_ms_mean, and step ends every_step.
bool begins_with_part(std::string_view name, std::string_view part) {
  return part.size() >= shortest_part && name.size() > part.size() && name.starts_with(part) &&
         name[part.size()] == '_';
}

bool ends_with_part(std::string_view name, std::string_view part) {
  return part.size() >= shortest_part && name.size() > part.size() && name.ends_with(part) &&
         name[name.size() - part.size() - 1] == '_';
}

}  // namespace

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > longest_word) return std::nullopt;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::optional<std::string_view> found;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > longest_word) continue;
    const std::size_t edits = edits_between(word, candidate);
    if (edits >= fewest || edits >= word.size()) continue;
    fewest = edits;
    found = candidate;
  }
  if (found) return found;
  const auto shares_a_part = [&](std::string_view candidate) {
    return begins_with_part(candidate, word) || ends_with_part(word, candidate);
  };
  const auto part = std::ranges::find_if(candidates, shares_a_part);
  return part != candidates.end() ? std::optional(*part) : std::nullopt;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates,
                         std::string otherwise) {
  const auto near = nearest(word, candidates);
  if (!near) return otherwise;
  return "did you mean '" + std::string(*near) + "'?";
}

std::string either(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? std::string() : words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

}  // namespace stepgate
