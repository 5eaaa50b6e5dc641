// SPDX-License-Identifier: MIT
#include "judge/verdict/verdict.h"

#include <algorithm>
#include <array>

namespace stepgate {

Outcome worst(const std::vector<AssertionVerdict>& assertions) {
  constexpr std::array from_worst{
      Outcome::fails,     Outcome::machine_slower, Outcome::not_comparable, Outcome::no_baseline,
      Outcome::undecided, Outcome::skipped,        Outcome::passes};
  for (const Outcome outcome : from_worst) {
    const bool found = std::any_of(assertions.begin(), assertions.end(),
                                   [&](const auto& one) { return one.outcome == outcome; });
    if (found) return outcome;
  }
  return Outcome::undecided;
}

}  // namespace stepgate
