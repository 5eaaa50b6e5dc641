// SPDX-License-Identifier: MIT
// Does a variant's step take another time between those of others than alone? Compares its time
// right after steps of its own with that right after steps of another, and with its host's. The
// judge decides what becomes of a comparison where it does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "measure/rounds/measurement.h"

namespace stepgate {

// log(time after its own steps / time of all its steps) of a variant in one round. Nothing where it
// followed only itself or only others.
std::optional<double> carry_over_in(const Round&, int variant);

// How far log(left / right) of the variants alone lies from that of all their steps, over rounds:
// what a comparison of the two is wrong by.
struct CarryOver {
  double size = 0;
  double standard_error = 0;
  std::int64_t rounds = 0;  // with evidence, for the variant that has fewer of them
};
// The level at which something is shown that makes a comparison doubtful: rarely wrong over the
// many comparisons of a suite.
inline constexpr double doubt_level = 0.001;
// Two-sided, by Student's t with the fewer rounds of the two.
bool is_shown(const CarryOver&);

// By the steps that came right after their own kind. Nothing while fewer than three rounds tell of
// both.
std::optional<CarryOver> carry_over_between(std::span<const Round>, int left, int right);

// log(host time of its steps / their time) of a variant in one interleaved round where that is
// above 0: the host issued them ahead, while the device was at the steps of others, and alone they
// would take as long as their host. The queue holds hundreds of launches, so a step after its own
// kind has the same head start and does not show it. Nothing where the host's time is unknown.
std::optional<double> hidden_in(const Round&, int variant);
std::optional<CarryOver> run_ahead_between(std::span<const Round>, int left, int right);

}  // namespace stepgate
