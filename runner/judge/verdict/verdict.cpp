// SPDX-License-Identifier: MIT
// The order of outcomes.
#include "judge/verdict/verdict.h"

#include <algorithm>
#include <array>

namespace stepgate {

Outcome worst(const std::vector<SentenceVerdict>& sentences) {
  constexpr std::array from_worst{
      Outcome::refuted,   Outcome::machine_slower, Outcome::not_comparable, Outcome::no_baseline,
      Outcome::undecided, Outcome::skipped,        Outcome::holds};
  for (const Outcome outcome : from_worst) {
    const bool found = std::any_of(sentences.begin(), sentences.end(),
                                   [&](const auto& one) { return one.outcome == outcome; });
    if (found) return outcome;
  }
  return Outcome::undecided;
}

}  // namespace stepgate
