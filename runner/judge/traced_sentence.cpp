// SPDX-License-Identifier: MIT
#include "judge/traced_sentence.h"

#include <algorithm>
#include <utility>

#include "judge/reasons.h"
#include "stats/e_process.h"
#include "stats/quantile.h"

namespace stepgate {
namespace {

// The first metric that no traced round tells, if there is one.
std::optional<MetricOf> absent_metric(const Expectation& sentence,
                                      const std::vector<Sources>& rounds) {
  for (const MetricOf& metric : metrics_in(sentence)) {
    for (const Sources& round : rounds) {
      if (!side_value({{metric}}, round)) return metric;
    }
  }
  return std::nullopt;
}

// Of a side, over the rounds. A median, since a side may be nothing in some of them.
double typical(const Side& side, const std::vector<Sources>& rounds) {
  std::vector<double> values;
  for (const Sources& round : rounds) values.push_back(side_value(side, round).value_or(0));
  return quantile(std::move(values), 0.5);
}

}  // namespace

void decide_traced(const Expectation& sentence, const Scenario& scenario,
                   std::span<const StepPlan> plans, const Measurement& measurement,
                   const JudgeSettings& settings, const Contrasts& earlier,
                   const std::optional<std::string>& disturbance, SentenceVerdict& verdict) {
  TimedSentence test = continued_test(sentence, settings.alpha, settings.beta, earlier);
  const std::vector<Sources> rounds =
      rounds_that_decide(sentence, plans, measurement, settings.counted);
  const auto missing = reason_without_trace(measurement);
  const auto absent = absent_metric(sentence, rounds);
  if (missing || absent) verdict.reason = missing ? *missing : absent_reason(*absent);
  if (absent) return;
  const Outcome outcome_before = test.outcome();
  for (const Sources& round : rounds) test.add(*contrast_of(sentence, round));
  const auto earlier_rounds = std::ssize(contrasts_for(sentence, earlier));
  if (rounds.empty() && earlier_rounds == 0) return;
  verdict.outcome = test.outcome();
  verdict.timed = test.evidence(scenario.measure.confidence);
  verdict.timed->earlier_rounds = earlier_rounds;
  if (!rounds.empty()) {
    verdict.left = typical(sentence.left, rounds);
    verdict.right = typical(sentence.right, rounds);
  } else {
    verdict.right = side_value(sentence.right, {.plans = plans, .counted = settings.counted});
  }
  verdict.reason = timed_reason(sentence, verdict, measurement, scenario.measure.confidence,
                                fewest_rounds(settings.beta));
  if (verdict.outcome == Outcome::undecided && missing) verdict.reason = *missing;
  // What trusted rounds have decided stays so.
  if (disturbance && outcome_before == Outcome::undecided) {
    verdict.outcome = Outcome::undecided;
    verdict.reason =
        environment_reason(*disturbance, sentence, verdict, scenario.measure.confidence);
  }
}

bool traced_rounds_decide(const Scenario& scenario, std::span<const StepPlan> plans,
                          const Traced& traced, const JudgeSettings& settings) {
  Measurement measurement;
  measurement.traced.emplace();  // without the timelines, which are large
  measurement.traced->steps = traced.steps;
  measurement.traced->rounds = traced.rounds;
  const auto decided = [&](const Expectation& sentence) {
    if (names_stored(sentence) || evidence_of(sentence) != Evidence::traced) return true;
    SentenceVerdict verdict;
    decide_traced(sentence, scenario, plans, measurement, settings, {}, std::nullopt, verdict);
    return verdict.outcome != Outcome::undecided;
  };
  return std::all_of(scenario.regime.begin(), scenario.regime.end(), decided) &&
         std::all_of(scenario.expect.begin(), scenario.expect.end(), decided);
}

}  // namespace stepgate
