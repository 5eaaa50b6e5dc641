// SPDX-License-Identifier: MIT
#include "judge/forecast.h"

#include <algorithm>

#include "stats/e_process.h"

namespace stepgate {

std::optional<Forecast> forecast(const ExpectedCost& expected, const Scenario& scenario,
                                 const JudgeSettings& settings) {
  constexpr double one_percent = 0.01;
  if (expected.round.count() == 0) return std::nullopt;
  Forecast made{.round = expected.round,
                .rounds_to_hold = fewest_rounds_to_hold(scenario, settings),
                .rounds_to_refute = fewest_rounds_to_refute(scenario, settings),
                .rounds_for_one_percent = {},
                .rounds_that_fit = expected.most_rounds};
  if (expected.deviation > 0) {
    made.rounds_for_one_percent =
        expected_rounds(one_percent / expected.deviation, std::min(settings.alpha, settings.beta));
  }
  return made;
}

}  // namespace stepgate
