// SPDX-License-Identifier: MIT
// Detects carry-over: does a variant's step take longer or shorter between steps of other variants
// than alone? Compares its time after its own steps with its time after other variants' steps, and
// with its host time. The judge decides what becomes of a comparison with carry-over.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "measure/rounds/measurement.h"

namespace stepgate {

// log(time after its own steps / time of all its steps) of a variant in one round. nullopt where
// the variant followed only itself or only others.
std::optional<double> carry_over_in(const Round&, int variant);

// The bias of a comparison through carry-over, over the rounds: log(left / right) of steps that
// follow their own variant, minus that of all steps.
struct CarryOver {
  double size = 0;
  double standard_error = 0;
  std::int64_t rounds = 0;  // with evidence, of the variant that has fewer of them
};
// Significance level at which carry-over makes a comparison doubtful. It is small, because a suite
// makes many comparisons.
inline constexpr double doubt_level = 0.001;
// Two-sided Student's t test, with the smaller number of rounds of the two variants.
bool is_shown(const CarryOver&);

// Estimated from the steps that came directly after steps of their own variant. nullopt while fewer
// than three rounds have such steps of both variants.
std::optional<CarryOver> carry_over_between(std::span<const Round>, int left, int right);

// log(host time of its steps / their time) of a variant in one interleaved round, where it is above
// 0. Then the host issued the steps ahead, while the device ran other variants' steps, and alone
// they would take as long as their host time. The queue holds hundreds of launches, so a step after
// its own variant has the same head start and does not show this. nullopt where the host time is
// unknown.
std::optional<double> hidden_in(const Round&, int variant);
std::optional<CarryOver> run_ahead_between(std::span<const Round>, int left, int right);

}  // namespace stepgate
