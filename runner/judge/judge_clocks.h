// SPDX-License-Identifier: MIT
// Splits a difference in time into cycles and clock rate. This is for readers only: assertions are
// decided by time, since a step that lowers its clock is slower in production too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"
#include "scenario/assertions/expectation.h"

namespace stepgate {

// Splits the ratio of an assertion that compares a time or a rate of two variants, where the clock
// rates of all their segments are known. Times, cycles and clock rates are geometric means over the
// segments, so that time = cycles / clock also holds for their ratios.
std::optional<ClockSplit> clock_split(const Expectation&, const Measurement&);

// "fix takes 1.9 % more time a step than baseline: 0.1 % more cycles, and 1.8 % because its SM
// clock is lower, 1945 instead of 1980 MHz".
std::string in_words(const ClockSplit&);

// Returns one line for every variant whose clock rate differs from the first variant's by more than
// a thousandth, as shown at this level by the test that assertions use. Variants run in random
// order, so the difference is caused by them.
std::vector<std::string> clock_notes(const Measurement&, double level);

}  // namespace stepgate
