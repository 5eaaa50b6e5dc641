// SPDX-License-Identifier: MIT
// Finds what separates two variants of a scenario: the counts that differ, the part of the time
// that differs most, and the phase of the step in which they do.
#pragma once

#include <optional>
#include <span>

#include "judge/verdict/mechanism.h"
#include "judge/verdict/sides.h"

namespace stepgate {

// Two variants by their places, and what the clock says of them.
struct PairToExplain {
  std::size_t first = 0;
  std::size_t other = 1;
  // Step time of the first over that of the other, where timed rounds tell them apart.
  std::optional<double> timed_ratio = {};
};

// Their step times in timed rounds: nothing where their ratio differs from 1 by less than three
// standard errors, or where fewer than four rounds tell.
std::optional<double> timed_ratio(const Measurement&, std::size_t first, std::size_t other);

// A count differs when it does so in every traced round; a part of the time when all rounds of one
// variant lie beyond all rounds of the other by at least a hundredth of a step. Where no part does
// it says whether the clock tells them apart all the same, and what is rarer than the traced steps.
Separation separation_of(std::span<const Subject> variants, const PairToExplain&, const Traced&);

}  // namespace stepgate
