// SPDX-License-Identifier: MIT
// Does what a variant leaves behind cost the one that follows it? Compares a variant's time right
// after steps of its own with that right after steps of another. What becomes of a comparison where
// it does is judge's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "measure/measurement.h"

namespace stepgate {

// log(time after its own steps / time of all its steps) of a variant in one round. Nothing where it
// followed only itself or only others.
std::optional<double> carry_over_in(const Round&, int variant);

// How far log(left / right) after steps of their own lies from that of all steps, over rounds: what
// a comparison of the two is wrong by. Nothing while fewer than three rounds tell of both.
struct CarryOver {
  double size = 0;
  double standard_error = 0;
  std::int64_t rounds = 0;  // that tell of the variant of which fewer do
};
// Two-sided at 0.1 %, by Student's t with the fewer rounds of the two.
bool is_shown(const CarryOver&);
std::optional<CarryOver> carry_over_between(std::span<const Round>, int left, int right);

}  // namespace stepgate
