// SPDX-License-Identifier: MIT
// One error budget for any number of candidates that are tested one after the other, as e-LOND
// spends it (Xu and Ramdas, Online multiple testing with e-values, 2024). A candidate is kept once
// its e-value reaches 1 / level. Of all that is ever kept, the expected share that should not have
// been is then at most `budget`, whatever the candidates have to do with each other. So is the
// probability that anything is kept where nothing should be.
#pragma once

#include <cstdint>

namespace stepgate {

// The share of the budget that a candidate gets, counted from 1. The shares of all candidates sum
// to 1 and fall as 1 / (n log^2 n), so that late candidates still get some.
double share_of_candidate(std::int64_t number);

// The level of a candidate that comes after `kept` candidates which were kept.
double level_of_candidate(double budget, std::int64_t number, std::int64_t kept);

// The sum of the levels of all candidates after the first `tested`, if none of them is kept.
double budget_left(double budget, std::int64_t tested, std::int64_t kept);

}  // namespace stepgate
