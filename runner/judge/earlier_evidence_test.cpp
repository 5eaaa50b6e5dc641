// SPDX-License-Identifier: MIT
// Tests what repeating a run gains, with and without stored evidence.
#include "judge/earlier_evidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "base/random.h"
#include "judge/assertions/timed_assertion.h"
#include "judge/testing/fake_scenario.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

constexpr int rounds_of_a_run = 12;
constexpr int runs_at_most = 30;
constexpr int all_series = sanitized ? 200 : 1000;
// Three standard errors of a rate that is estimated from all series.
const double series_slack_at_alpha = 3 * std::sqrt(alpha * (1 - alpha) / all_series);
const double series_slack_at_beta = 3 * std::sqrt(beta * (1 - beta) / all_series);

Expectation no_slower() {
  return fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1);
}

// Returns the test of the assertion after the earlier runs.
TimedAssertion continued(const Expectation& assertion, const Contrasts& earlier) {
  TimedAssertion test(assertion, alpha, beta);
  for (const double contrast : contrasts_for(assertion, earlier)) test.add(contrast);
  return test;
}

// How a run may end besides its limit of rounds or an outcome.
enum class Ends {
  by_itself,
  // A user watches the run and ends it as soon as the result looks bad.
  when_it_looks_bad,
};

// Makes one run that continues from the earlier runs, and appends its contrasts.
Outcome run_once(Contrasts& earlier, double centre, Ends ends, Random& random) {
  const Expectation assertion = no_slower();
  TimedAssertion test = continued(assertion, earlier);
  if (test.outcome() != Outcome::undecided) return test.outcome();
  std::vector<double>& kept = earlier[name_in_files(assertion)];
  double sum = 0;
  for (int round = 0; round < rounds_of_a_run && test.outcome() == Outcome::undecided; ++round) {
    kept.push_back(centre + 0.01 * random.normal());
    test.add(kept.back());
    sum += kept.back();
    if (ends == Ends::when_it_looks_bad && sum < 0) break;
  }
  return test.outcome();
}

// Counts outcomes of series of runs that each stop at the first pass; `keeps` says whether a run
// uses the evidence of the earlier ones.
struct Series {
  int failed = 0;
  int held = 0;
};
enum class Keeps { nothing, evidence };
Series run_until_it_holds(Keeps keeps, double centre, Ends ends, std::uint64_t seed) {
  Random random(seed);
  Series found;
  for (int series = 0; series < all_series; ++series) {
    Contrasts earlier;
    bool failed = false;
    bool held = false;
    for (int run = 0; run < runs_at_most && !held; ++run) {
      if (keeps == Keeps::nothing) earlier.clear();
      const Outcome outcome = run_once(earlier, centre, ends, random);
      failed = failed || outcome == Outcome::fails;
      held = outcome == Outcome::passes;
    }
    found.failed += failed;
    found.held += held;
  }
  return found;
}

class RunAgain : public testing::TestWithParam<Ends> {};

TEST_P(RunAgain, KeepsTheErrorRatesHoweverOftenATieIs) {
  constexpr std::uint64_t seed = 2026;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const Series kept = run_until_it_holds(Keeps::evidence, 0, GetParam(), seed);
  const Series forgotten = run_until_it_holds(Keeps::nothing, 0, GetParam(), seed);
  RecordProperty("held_with_evidence", kept.held);
  RecordProperty("held_without", forgotten.held);
  std::printf(
      "a tie, run up to %d times until it passes, %s, %d series: with evidence %d failed, %d "
      "held; without %d failed, %d held\n",
      runs_at_most, GetParam() == Ends::by_itself ? "each to its end" : "cut when it looks bad",
      all_series, kept.failed, kept.held, forgotten.failed, forgotten.held);
  EXPECT_LE(kept.failed, (alpha + series_slack_at_alpha) * all_series);
  EXPECT_LE(kept.held, (beta + series_slack_at_beta) * all_series);
  EXPECT_GT(forgotten.held, 2 * beta * all_series) << "the comparison compares nothing";
}

INSTANTIATE_TEST_SUITE_P(EarlierEvidence, RunAgain,
                         testing::Values(Ends::by_itself, Ends::when_it_looks_bad),
                         [](const auto& ends) {
                           return ends.param == Ends::by_itself ? "ByItself" : "WhenItLooksBad";
                         });

TEST(EarlierEvidence, LetsARunAgainDecideWhatOneRunCannot) {
  constexpr std::uint64_t seed = 2027;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const double small = 0.3 * 0.01;  // standard deviations: too small for one run to show
  const Series slower = run_until_it_holds(Keeps::evidence, -small, Ends::by_itself, seed);
  const Series faster = run_until_it_holds(Keeps::evidence, small, Ends::by_itself, seed);
  EXPECT_GT(slower.failed, 0.9 * all_series);
  EXPECT_GT(faster.held, 0.9 * all_series);
  EXPECT_LE(slower.held, beta * all_series);
  EXPECT_LE(faster.failed, alpha * all_series);
}

TEST(EarlierEvidence, KeepsAnOutcomeThatItReachedOnce) {
  Contrasts earlier;
  Random random(5);
  ASSERT_EQ(run_once(earlier, -0.05, Ends::by_itself, random), Outcome::fails);
  TimedAssertion test = continued(no_slower(), earlier);
  for (int round = 0; round < 500; ++round) test.add(0.05);
  EXPECT_EQ(test.outcome(), Outcome::fails);
}

// Makes whole runs of a fake device.
struct Continued {
  Scenario scenario = scenario_of({no_slower()});
  std::vector<Subject> subjects = counted_by_script();
  JudgeSettings settings;

  Judged run(double fix_ratio, std::uint64_t seed) const {
    Script script;
    script.step_time = noisy(fix_ratio, seed);
    FakeRunner runner(script);
    MeasureRequest request;
    request.knobs = scenario.measure;
    request.seed = seed;
    request.fewest_rounds = fewest_rounds_to_hold(scenario, settings);
    request.enough = enough_evidence(scenario, subjects, settings);
    Judged judged;
    judged.measurement = measure(runner, subjects, request);
    judged.verdict = judge(scenario, subjects, judged.measurement, settings);
    return judged;
  }
  EarlierEvidence evidence(const Judged& judged) const {
    return evidence_of_rounds(scenario, subjects, judged.measurement, settings);
  }
};

TEST(EarlierEvidence, IsContinuedByTheNextRunAndTold) {
  Continued line;
  line.scenario.measure.rounds = 7;
  const Judged first = line.run(1, 4);
  ASSERT_EQ(first.verdict.outcome, Outcome::undecided);
  EXPECT_EQ(first.verdict.earlier_runs, 0);
  line.settings.earlier = line.evidence(first);
  EXPECT_EQ(fewest_rounds_to_hold(line.scenario, line.settings), 1);
  EXPECT_FALSE(nothing_left_to_measure(line.scenario, line.subjects, line.settings));
  const Judged second = line.run(0.98, 5);
  const AssertionVerdict& assertion = second.verdict.assertions.front();
  EXPECT_EQ(second.verdict.earlier_runs, 1);
  EXPECT_EQ(second.verdict.earlier_rounds, 7);
  EXPECT_EQ(assertion.timed->earlier_rounds, 7);
  EXPECT_EQ(std::ssize(assertion.timed->contrasts), 7 + second.verdict.rounds);
  const auto& all = assertion.timed->contrasts;
  const auto& before = first.verdict.assertions.front().timed->contrasts;
  EXPECT_TRUE(std::equal(before.begin(), before.end(), all.begin()));
  EXPECT_NE(assertion.reason.find(" over " + std::to_string(all.size()) + " rounds"),
            std::string::npos)
      << assertion.reason;
}

TEST(EarlierEvidence, LeavesNothingToMeasureOnceAllIsDecided) {
  Continued line;
  const Judged first = line.run(1.05, 1);
  ASSERT_EQ(first.verdict.outcome, Outcome::fails);
  EXPECT_FALSE(nothing_left_to_measure(line.scenario, line.subjects, line.settings));
  line.settings.earlier = line.evidence(first);
  ASSERT_TRUE(nothing_left_to_measure(line.scenario, line.subjects, line.settings));
  const Verdict verdict = judge(line.scenario, line.subjects,
                                unmeasured(line.scenario, line.subjects, {}, 9), line.settings);
  EXPECT_EQ(verdict.outcome, Outcome::fails);
  EXPECT_EQ(verdict.rounds, 0);
  EXPECT_EQ(verdict.assertions.front().timed->ratio, first.verdict.assertions.front().timed->ratio);
  // The stricter alpha of a larger suite may revoke the outcome, so that more rounds are needed.
  line.settings.alpha = 1e-12;
  EXPECT_FALSE(nothing_left_to_measure(line.scenario, line.subjects, line.settings));
}

TEST(EarlierEvidence, GoesOnFromItsRegimeToo) {
  Continued line;
  line.scenario =
      scenario_of({no_slower()}, {assertion("host_bound", {{of("baseline", Metric::host_share)}},
                                            Relation::at_least, {{0.5}})});
  const Judged first = line.run(1, 1);  // the host share is 25 %
  ASSERT_EQ(first.verdict.assertions[0].outcome, Outcome::skipped);
  line.settings.earlier = line.evidence(first);
  EXPECT_TRUE(nothing_left_to_measure(line.scenario, line.subjects, line.settings));
  const Verdict verdict = judge(line.scenario, line.subjects,
                                unmeasured(line.scenario, line.subjects, {}, 9), line.settings);
  EXPECT_EQ(verdict.regime[0].outcome, Outcome::fails);
  EXPECT_EQ(verdict.assertions[0].outcome, Outcome::skipped);
}

TEST(EarlierEvidence, IsNotMadeOfRoundsThatAreNotToBeTrusted) {
  Continued line;
  Measurement measurement = line.run(1, 1).measurement;
  EXPECT_TRUE(is_trusted(measurement));
  measurement.another_step = AnotherStep{};
  EXPECT_FALSE(is_trusted(measurement));
}

}  // namespace
}  // namespace stepgate
