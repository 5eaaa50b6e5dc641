// SPDX-License-Identifier: MIT
// How much of a difference in time is cycles and how much the clock. For reading: assertions are
// decided on time alone, since a step that lowers its clock is slower in production too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"
#include "scenario/assertions/expectation.h"

namespace stepgate {

// Takes apart an assertion that compares a time or a rate of one variant with one of another, where
// the clock of all their segments is known. Times, cycles and clocks are geometric means over the
// segments, so that time = cycles / clock holds of the ratios.
std::optional<ClockSplit> clock_split(const Expectation&, const Measurement&);

// "fix takes 1.9 % more time a step than baseline: 0.1 % more cycles, and 1.8 % because its SM
// clock is lower, 1945 instead of 1980 MHz".
std::string in_words(const ClockSplit&);

// A line for every variant whose clock differs from the first one's by more than a thousandth,
// shown at that level by the test that assertions take: in a random order only the variants can be
// the cause.
std::vector<std::string> clock_notes(const Measurement&, double level);

}  // namespace stepgate
