// SPDX-License-Identifier: MIT
#include "judge/decide_by_rounds.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/stats/e_process.h"
#include "base/stats/quantile.h"
#include "judge/assertion_test.h"
#include "judge/assertions/doubts.h"
#include "judge/assertions/estimate.h"
#include "judge/assertions/reasons.h"
#include "judge/judge_clocks.h"

namespace stepgate {
namespace {

// Names the value that a round does not know.
std::string reason_of_unknown_value(const Expectation& assertion,
                                    const std::vector<Sources>& rounds) {
  for (const Sources& round : rounds) {
    if (const auto metric = unknown_metric(assertion, round)) return absent_reason(*metric);
  }
  return "its sides are not both positive numbers";
}

// The median of a side over the rounds, where a geometric mean fails because some values may be 0.
double typical(const Side& side, const std::vector<Sources>& rounds) {
  std::vector<double> values;
  for (const Sources& round : rounds) values.push_back(side_value(side, round).value_or(0));
  return quantile(std::move(values), 0.5);
}

// Fills in the right side as a geometric mean and the left side so that left / right is the
// estimate. Where the right side is 0 in a round, both sides are medians, and the ratio is relative
// to nearly_nothing.
void fill_in_timed_sides(const Expectation& assertion, const std::vector<Sources>& rounds,
                         double ratio, AssertionVerdict& verdict) {
  double log_right = 0;
  for (const Sources& round : rounds) {
    const double right = side_value(assertion.right, round).value_or(0);
    if (right < nearly_nothing(assertion)) {
      verdict.left = typical(assertion.left, rounds);
      verdict.right = typical(assertion.right, rounds);
      return;
    }
    log_right += std::log(right);
  }
  verdict.right = std::exp(log_right / static_cast<double>(rounds.size()));
  verdict.left = *verdict.right * ratio;
}

// Returns why this run has no rounds, in words; nullopt where it has rounds or may get some.
std::optional<std::string> reason_without_rounds(const Expectation& assertion,
                                                 const Scenario& scenario,
                                                 const Measurement& measurement) {
  if (evidence_of(assertion) == Evidence::traced) return reason_without_trace(measurement);
  if (measurement.budget_refused) return budget_reason(measurement, scenario.measure);
  if (measurement.rounds.empty()) return no_rounds_reason();
  return std::nullopt;
}

}  // namespace

void decide_by_rounds(const Expectation& assertion, const Scenario& scenario,
                      std::span<const Subject> subjects, const Measurement& measurement,
                      const JudgeSettings& settings, const EarlierRounds& earlier,
                      const std::optional<std::string>& disturbance, AssertionVerdict& verdict) {
  const std::vector<Sources> rounds = rounds_that_decide(assertion, subjects, measurement);
  AssertionTest test(assertion, subjects, settings, earlier);
  const Outcome outcome_before = test.outcome();
  const auto missing = reason_without_rounds(assertion, scenario, measurement);
  if (missing) verdict.reason = *missing;
  for (const Sources& round : rounds) test.add(round);
  if (!test.values_are_known()) {
    verdict.reason = reason_of_unknown_value(assertion, rounds);
    return;
  }
  test.describe(scenario.measure.confidence, verdict);
  if (!verdict.timed && !verdict.not_randomised) return;
  if (rounds.empty() && !verdict.left) {
    verdict.right = side_value(assertion.right, {.subjects = subjects});
  } else if (verdict.evidence == Evidence::traced) {
    verdict.left = typical(assertion.left, rounds);
    verdict.right = typical(assertion.right, rounds);
  } else if (!verdict.left) {  // percentiles have filled in their sides
    fill_in_timed_sides(assertion, rounds, ratio_of(verdict), verdict);
  }
  if (rounds.empty() && verdict.right && !verdict.left)
    verdict.left = std::max(*verdict.right, nearly_nothing(assertion)) * ratio_of(verdict);
  // A class is not a number and has no estimate.
  if (!names_a_bound(assertion)) verdict.estimate = estimate_of(assertion, verdict);
  if (verdict.evidence == Evidence::timed) verdict.clocks = clock_split(assertion, measurement);
  verdict.reason = reason_by_rounds(assertion, verdict, measurement, scenario.measure.confidence,
                                    fewest_rounds(settings.beta));
  if (verdict.outcome == Outcome::undecided && missing) verdict.reason = *missing;
  if (verdict.evidence == Evidence::traced && !rounds.empty())
    verdict.reason += ranks_in_words(assertion, subjects, *measurement.traced);
  if (outcome_before != Outcome::undecided) return;  // trusted earlier rounds decided it
  std::optional<std::string> doubt;
  if (disturbance) {
    doubt = "environment: " + *disturbance;
  } else if (verdict.evidence == Evidence::timed) {
    doubt = verdict.timed
                ? doubt_about(assertion, subjects, measurement, *verdict.timed)
                : doubt_about_rare_work(assertion, subjects, measurement, ratio_of(verdict));
  }
  if (!doubt) return;
  verdict.outcome = Outcome::undecided;
  verdict.in_doubt = true;
  verdict.reason = reason_in_doubt(*doubt, assertion, verdict, scenario.measure.confidence);
}

bool traced_rounds_decide(const Scenario& scenario, std::span<const Subject> subjects,
                          const Traced& traced, const JudgeSettings& settings) {
  const auto decided = [&](const Expectation& assertion) {
    if (names_stored(assertion) || evidence_of(assertion) != Evidence::traced) return true;
    AssertionTest test(assertion, subjects, settings, {});
    for (const TracedRound& round : traced.rounds)
      test.add({.subjects = subjects, .traced = &round});
    return !test.is_open();
  };
  return std::all_of(scenario.regime.begin(), scenario.regime.end(), decided) &&
         std::all_of(scenario.expect.begin(), scenario.expect.end(), decided);
}

}  // namespace stepgate
