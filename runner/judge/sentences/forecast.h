// SPDX-License-Identifier: MIT
// Cost of a verdict, before the first round is run.
#pragma once

#include <cstdint>
#include <optional>

#include "judge/judge.h"
#include "measure/rounds/measurement.h"

namespace stepgate {

struct Forecast {
  std::chrono::nanoseconds round{0};
  std::int64_t rounds_to_hold = 0;    // at the earliest, all lines
  std::int64_t rounds_to_refute = 0;  // at the earliest, one line
  // Until a line is decided that is true or false by one percent, at the noise that the pilot saw.
  std::optional<double> rounds_for_one_percent;
  std::int64_t rounds_that_fit = 0;
};

// Nothing for a device without time. The rounds are expected_rounds of stats/e_process.h.
std::optional<Forecast> forecast(const ExpectedCost&, const Scenario&, const JudgeSettings&);

}  // namespace stepgate
