// SPDX-License-Identifier: MIT
#include "judge/sentences/forecast.h"

#include <algorithm>

#include "stats/e_process.h"

namespace stepgate {

std::optional<Forecast> forecast(const ExpectedCost& expected, const Scenario& scenario,
                                 const JudgeSettings& settings) {
  constexpr double one_percent = 0.01;
  if (expected.round.count() == 0) return std::nullopt;
  Forecast made{
      .round = expected.round,
      // A run that is compared with stored ones takes as many as those have.
      .rounds_to_hold = std::max(fewest_rounds_to_hold(scenario, settings), expected.fewest_rounds),
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
