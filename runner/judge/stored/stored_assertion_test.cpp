// SPDX-License-Identifier: MIT
// Tests assertions about stored runs: what decides them, and what forbids a comparison.
#include "judge/stored/stored_assertion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "base/random.h"
#include "judge/testing/stored_runs_by_hand.h"

namespace stepgate {
namespace {

bool says(const AssertionVerdict& verdict, const std::string& words) {
  return verdict.reason.find(words) != std::string::npos;
}

TEST(StoredAssertion, HasNoBaselineAndSaysHowToGetOne) {
  const Scenario scenario = scenario_of_one({no_slide});
  const AssertionVerdict verdict =
      judged(scenario, std::nullopt, measured(subjects_with_anchors(scenario), 1));
  EXPECT_EQ(verdict.outcome, Outcome::no_baseline);
  EXPECT_EQ(verdict.reason,
            "no run is stored for this device; `stepgate accept scenarios/small.toml` stores one");
}

TEST(StoredAssertion, IsAlwaysUndecidedAgainstFewerThanThreeSessions) {
  for (const std::vector<double>& stored : {std::vector<double>{1.0}, {0.999, 1.001}}) {
    for (const double contrast : {-5.0, 0.0, 1.0, 1.02, 5.0}) {
      const AssertionVerdict verdict = judged(no_slide, stored, contrast);
      EXPECT_EQ(verdict.outcome, Outcome::undecided) << contrast;
      EXPECT_FALSE(verdict.stored->normalised.interval.has_value());
      EXPECT_TRUE(says(verdict,
                       "; fewer than 3 do not say how far sessions differ, and `stepgate accept "
                       "scenarios/small.toml` in another hour, better on another day, adds one"))
          << verdict.reason;
    }
  }
}

// Returns the runs of `quiet` with these dates and this boot.
Baseline made_at(const Scenario& scenario, const std::vector<std::string>& dates,
                 const std::string& boot) {
  Baseline baseline = baseline_of(scenario, quiet);
  for (std::size_t run = 0; run < baseline.runs.size(); ++run) {
    baseline.runs[run].provenance.date = dates[std::min(run, dates.size() - 1)];
    baseline.runs[run].provenance.boot = boot;
  }
  return baseline;
}

TEST(StoredAssertion, IsUndecidedAgainstFiveRunsOfOneSession) {
  const Scenario scenario = scenario_of_one({no_slide});
  const std::vector<Subject> subjects = subjects_with_anchors(scenario);
  // Runs without a boot share a session within a day.
  const std::vector<std::string> of_a_day{"2026-11-21T08:00:00Z", "2026-11-21T12:00:00Z"};
  const std::vector<std::string> of_an_hour{"2026-11-21T08:01:00Z", "2026-11-21T08:02:00Z"};
  for (const Baseline& baseline :
       {made_at(scenario, of_a_day, ""), made_at(scenario, of_an_hour, "0x1")}) {
    for (const double contrast : {0.9, 1.0, 1.1}) {
      const AssertionVerdict verdict = judged(scenario, baseline, measured(subjects, contrast));
      EXPECT_EQ(verdict.outcome, Outcome::undecided);
      EXPECT_TRUE(says(verdict, " against 5 stored runs of 1 session, of ")) << verdict.reason;
    }
  }
}

TEST(StoredAssertion, CountsRunsOfOneSessionOnce) {
  const Scenario scenario = scenario_of_one({no_slide});
  const Baseline baseline = made_at(scenario,
                                    {"2026-11-21T08:00:00Z", "2026-11-21T08:30:00Z",
                                     "2026-11-21T09:30:00Z", "2026-11-22T08:00:00Z"},
                                    "0x1");
  const AssertionVerdict verdict =
      judged(scenario, baseline, measured(subjects_with_anchors(scenario), 1));
  EXPECT_EQ(verdict.outcome, Outcome::passes) << verdict.reason;
  EXPECT_EQ(verdict.stored->unit, StoredUnit::session);
  EXPECT_EQ(verdict.stored->runs, 5);
  EXPECT_EQ(verdict.stored->runs_of_units, (std::vector<std::int64_t>{2, 1, 2}));
  EXPECT_TRUE(says(verdict, " against 5 stored runs of 3 sessions, which differ by "));
  Baseline booted = baseline;
  booted.runs[1].provenance.boot = "0x2";
  EXPECT_EQ(judged(scenario, booted, measured(subjects_with_anchors(scenario), 1))
                .stored->runs_of_units.size(),
            4U);
}

// Everything random in a simulated run is drawn from the seed.
TEST(StoredAssertion, CountsEveryRunOfASimulatedDevice) {
  const Scenario scenario = scenario_of_one({no_slide});
  Baseline baseline = made_at(scenario, {"2026-11-21T08:00:00Z"}, "");
  for (StoredRun& run : baseline.runs) run.environment.kind = "simulated";
  Measurement measurement = measured(subjects_with_anchors(scenario), 1);
  measurement.device.kind = DeviceKind::simulated;
  const AssertionVerdict verdict = judged(scenario, baseline, measurement);
  EXPECT_EQ(verdict.outcome, Outcome::passes) << verdict.reason;
  EXPECT_EQ(verdict.stored->unit, StoredUnit::run);
  EXPECT_TRUE(says(verdict, " against 5 stored runs, which differ by ")) << verdict.reason;
}

// Assertions about stored runs share their alpha with each other, but not with comparisons of two
// variants.
TEST(StoredAssertion, SharesItsAlphaWithTheOthersAboutStoredRuns) {
  const Scenario scenario = scenario_of_one({no_slide});
  const std::vector<Subject> subjects = subjects_with_anchors(scenario);
  const Measurement slower = measured(subjects, 1.027);
  const auto outcome = [&](std::int64_t stored_lines, double alpha) {
    const JudgeSettings settings{.alpha = alpha,
                                 .stored_lines = stored_lines,

                                 .baseline = baseline_of(scenario, quiet)};
    return judge(scenario, subjects, slower, settings).assertions.front().outcome;
  };
  EXPECT_EQ(outcome(1, 0.01), Outcome::fails);
  EXPECT_EQ(outcome(1, 1e-4), Outcome::fails);
  EXPECT_EQ(outcome(2, 0.01), Outcome::undecided);
  const std::vector<const Scenario*> suite(3, &scenario);
  EXPECT_EQ(suite_settings(suite).stored_lines, 3);
}

TEST(StoredAssertion, PassesIsUndecidedAndFailsByThePredictionInterval) {
  // The limit is at theta = -log(0.98) = 2.02 %. The beta bound is 0.37 % below it and the alpha
  // bound 0.65 % above it.
  EXPECT_EQ(judged(no_slide, quiet, 1.000).outcome, Outcome::passes);
  EXPECT_EQ(judged(no_slide, quiet, 1.016).outcome, Outcome::passes);
  EXPECT_EQ(judged(no_slide, quiet, 1.018).outcome, Outcome::undecided);
  EXPECT_EQ(judged(no_slide, quiet, 1.026).outcome, Outcome::undecided);
  EXPECT_EQ(judged(no_slide, quiet, 1.027).outcome, Outcome::fails);
  EXPECT_EQ(judged(no_slide, quiet, 0.900).outcome, Outcome::passes);  // a speed-up
}

TEST(StoredAssertion, GivesThreeNumbersIntervalsRunsAndLimit) {
  EXPECT_EQ(
      judged(no_slide, quiet, 1.018).reason,
      "raw 0.982x (235.4k/s -> 231.2k/s) [0.977x, 0.987x], anchor launch.1 1.000x [1.000x, 1.000x] "
      "(scatter 0 %), normalised 0.982x [0.977x, 0.987x], 95 % intervals against 5 stored runs of "
      "5 sessions, which differ by 0.16 %, of 0123abc, newest 2026-11-14; the limit is 0.98x; only "
      "a change of 0.82 % beyond the limit would show, and `stepgate accept scenarios/small.toml` "
      "in another hour, better on another day, adds one");
}

TEST(StoredAssertion, NamesCommitsOnceAndCountsThoseThatItDoesNotName) {
  const Scenario scenario = scenario_of_one({no_slide});
  Baseline baseline = baseline_of(scenario, quiet);
  const std::string whole(40, 'f');
  const std::vector<std::string> commits{whole + "-dirty", whole + "-dirty", "b", "c", "d"};
  for (std::size_t run = 0; run < commits.size(); ++run)
    baseline.runs[run].provenance.commit = commits[run];
  const Measurement now = measured(subjects_with_anchors(scenario), 1);
  EXPECT_TRUE(says(judged(scenario, baseline, now),
                   ", of ffffffffff-dirty, b, c and 1 more, newest 2026-11-14;"));
  baseline.runs.pop_back();
  EXPECT_TRUE(says(judged(scenario, baseline, now), ", of ffffffffff-dirty, b and c, newest"));
}

// Judges a run in which the step takes exp(contrast) times its anchor's time. The anchor takes
// `slower` times as long as in the stored runs.
AssertionVerdict on_a_machine(double slower, double contrast,
                              const Expectation& assertion = no_slide) {
  const Scenario scenario = scenario_of_one({assertion});
  return judged(scenario, baseline_of(scenario, quiet),
                measured(subjects_with_anchors(scenario), contrast, rounds_of_stored_run, slower));
}

// An anchor that slows down as much as the step must not make the assertion pass.
TEST(StoredAssertion, SaysMachineSlowerWhereEverythingTakesTwiceAsLong) {
  const AssertionVerdict verdict = on_a_machine(2, 1);
  EXPECT_EQ(verdict.outcome, Outcome::machine_slower);
  EXPECT_NEAR(verdict.stored->raw.ratio * 0.98, 0.5, 1e-3);
  EXPECT_NEAR(verdict.stored->raw_then / verdict.stored->raw_now, 2, 1e-2);
  EXPECT_NEAR(verdict.stored->anchor.ratio, 2, 1e-9);
  EXPECT_NEAR(verdict.stored->normalised.ratio * 0.98, 1, 1e-3);
  EXPECT_TRUE(says(verdict, "raw 0.50x (235.4k/s -> 117.7k/s) [")) << verdict.reason;
  EXPECT_TRUE(says(verdict, ", anchor launch.1 2.00x [")) << verdict.reason;
  EXPECT_TRUE(says(verdict, ", normalised 1.000x [")) << verdict.reason;
  EXPECT_TRUE(says(
      verdict,
      "; the limit is 0.98x; this machine is slower than when they were stored, and "
      "the step beside its anchor is not beyond the limit: `stepgate gate --base BASE --head HEAD "
      "scenarios/small.toml` compares two builds on it, `stepgate accept "
      "scenarios/small.toml --reset TEXT` starts anew on it"))
      << verdict.reason;
}

TEST(StoredAssertion, FailsWhereTheStepIsSlowerOnAMachineThatIsAsItWas) {
  const AssertionVerdict verdict = on_a_machine(1, 1.05);
  EXPECT_EQ(verdict.outcome, Outcome::fails);
  EXPECT_FALSE(says(verdict, "slower")) << verdict.reason;
}

TEST(StoredAssertion, FailsWhereBothAreSlowerAndSaysSo) {
  const AssertionVerdict verdict = on_a_machine(1.1, 1.05);
  EXPECT_EQ(verdict.outcome, Outcome::fails);
  EXPECT_TRUE(says(verdict, "; this machine is slower too, but the step is so even beside"))
      << verdict.reason;
}

TEST(StoredAssertion, IsUndecidedWhereOnlyTheAnchorMoved) {
  const AssertionVerdict verdict = on_a_machine(0.95, 1 - std::log(0.95));
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_TRUE(says(verdict, "raw 1.000x (")) << verdict.reason;
  EXPECT_TRUE(says(verdict, "normalised 0.950x [")) << verdict.reason;
  EXPECT_TRUE(
      says(verdict, "; the anchor moved: beside it the step is beyond the limit, by itself"));
  // A disturbance that slows down only the anchor is not a speed-up of the step.
  const AssertionVerdict flattered = on_a_machine(1.25, 1 - std::log(1.25));
  EXPECT_EQ(flattered.outcome, Outcome::passes);
  EXPECT_FALSE(says(flattered, "refresh")) << flattered.reason;
}

TEST(StoredAssertion, IsNotComparableOnAFasterMachineWhereItAsksForALoss) {
  const AssertionVerdict verdict =
      on_a_machine(0.5, 1, fix_against_stored(Metric::step_ms_mean, Relation::at_least, 0.98));
  EXPECT_EQ(verdict.outcome, Outcome::not_comparable);
  EXPECT_TRUE(says(verdict, "; this machine is faster than when they were stored"));
}

TEST(StoredAssertion, AsksForARefreshWhereItIsBetterByMoreThanItTolerates) {
  const Expectation times = fix_against_stored(Metric::step_ms_mean, Relation::at_most, 1.02);
  Expectation turned = no_slide;
  std::swap(turned.left, turned.right);
  turned.relation = Relation::at_most;
  for (const Expectation& assertion : {no_slide, times, turned}) {
    const auto asks = [&](double contrast) {
      const AssertionVerdict verdict = on_a_machine(1, contrast, assertion);
      EXPECT_EQ(verdict.outcome, Outcome::passes) << verdict.reason;
      return says(verdict,
                  "; better by more than the assertion tolerates: refresh the baseline, `stepgate "
                  "accept scenarios/small.toml --reset TEXT` forgets the slower runs");
    };
    EXPECT_FALSE(asks(1.000));
    EXPECT_FALSE(asks(0.990));
    EXPECT_TRUE(asks(0.960));
  }
  const Expectation gain = fix_against_stored(Metric::samples_per_s, Relation::greater, 1.05);
  EXPECT_FALSE(says(on_a_machine(1, 0.8, gain), "refresh"));
}

// A rate of tokens is stored as the time of a step, like a rate of samples.
TEST(StoredAssertion, JudgesTokensAsItJudgesSamples) {
  for (const Metric metric : {Metric::tokens_per_s, Metric::samples_per_s}) {
    Scenario scenario = scenario_of_one({fix_against_stored(metric, Relation::at_least, 0.98)});
    Knobs& knobs = scenario.variants.front().knobs;
    knobs.model = {
        .kind = ModelKind::transformer, .layers = 1, .hidden = 32, .seq = 128, .heads = 2};
    knobs.optim.kind = OptimKind::adamw;
    const auto verdict_of = [&](double contrast) {
      return judged(scenario, baseline_of(scenario, quiet),
                    measured(subjects_with_anchors(scenario), contrast));
    };
    EXPECT_EQ(verdict_of(1).outcome, Outcome::passes);
    const AssertionVerdict slower = verdict_of(1.05);
    EXPECT_EQ(slower.outcome, Outcome::fails);
    const double samples =
        static_cast<double>(knobs.batch.size) / (anchor_seconds * std::exp(1.05));
    EXPECT_NEAR(slower.left.value(), samples * (metric == Metric::tokens_per_s ? 128 : 1),
                1e-3 * samples);
  }
}

// The machine of the stored runs drifts: the step's time relative to its anchor is the same in all
// runs.
TEST(StoredAssertion, DoesNotHoldWhereTheRawValueIsNotShownToBeWithin) {
  const Scenario scenario = scenario_of_one({no_slide});
  Baseline baseline = baseline_of(scenario, quiet);
  double sign = 1;
  for (StoredRun& run : baseline.runs) {
    run.variants[0].anchor_seconds *= std::exp(0.02 * sign);
    sign = -sign;
  }
  const AssertionVerdict verdict =
      judged(scenario, baseline, measured(subjects_with_anchors(scenario), 1));
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_TRUE(
      says(verdict, "; the raw value is not shown to be within the limit; only a change of"))
      << verdict.reason;
}

TEST(StoredAssertion, DoesNotGoOnHoldingOnAMachineThatGotSlower) {
  const Scenario scenario = scenario_of_one({no_slide});
  const std::vector<Subject> subjects = subjects_with_anchors(scenario);
  JudgeSettings settings{.baseline = baseline_of(scenario, quiet)};
  settings.is_kept = true;
  const std::string name = name_in_files(no_slide);
  const auto now = [&](double slower) {
    const Measurement run = measured(subjects, 1, rounds_of_stored_run, slower);
    return judge(scenario, subjects, run, settings).assertions.front().outcome;
  };
  settings.earlier = {
      .runs = 1, .stored = {{name, {1.0}}}, .stored_anchors = {{name, {log_of_anchor}}}};
  EXPECT_EQ(now(1), Outcome::passes);
  EXPECT_EQ(now(2), Outcome::machine_slower);
  settings.earlier = {.runs = 2,
                      .stored = {{name, {1.0, 1.0}}},
                      .stored_anchors = {{name, {log_of_anchor, log_of_anchor + std::log(2)}}}};
  EXPECT_EQ(now(1), Outcome::passes) << "the machine is what it was again";
  // An assertion that has never passed does not pass before the mean is within the limit.
  settings.earlier.stored[name] = {1.0};
  settings.earlier.stored_anchors[name] = {log_of_anchor + std::log(2)};
  EXPECT_EQ(now(1), Outcome::machine_slower);
  // Without stored anchors, the times of this run decide.
  settings.earlier.stored_anchors.clear();
  EXPECT_EQ(now(1), Outcome::passes);
  EXPECT_EQ(now(2), Outcome::machine_slower);
}

// Twenty runs of one subject are made at the limit. If each were decided separately, every run
// would be a new chance to pass.
TEST(StoredAssertion, IsNotDecidedByRunningAgain) {
  constexpr std::uint64_t seed = 20261122;
  SCOPED_TRACE("seed 20261122");
  constexpr int gates = 4000;
  constexpr int looks = 20;
  constexpr double deviation = 0.002;
  const double at_the_limit = 1 - std::log(0.98);
  const Scenario scenario = scenario_of_one({no_slide});
  const std::vector<Subject> subjects = subjects_with_anchors(scenario);
  JudgeSettings settings{.baseline = baseline_of(scenario, quiet)};
  settings.is_kept = true;
  Random random(seed);
  int failed = 0;
  int held = 0;
  for (int gate = 0; gate < gates; ++gate) {
    for (StoredRun& run : settings.baseline->runs)
      run.variants[0].times[0].contrasts.assign(12, 1 + deviation * random.normal());
    std::vector<double> earlier;
    for (int look = 1; look < looks; ++look)
      earlier.push_back(at_the_limit + deviation * random.normal());
    settings.earlier = {.runs = looks - 1,
                        .stored = {{name_in_files(no_slide), earlier}},
                        .stored_anchors = {{name_in_files(no_slide),
                                            std::vector<double>(earlier.size(), log_of_anchor)}}};
    const Measurement last = measured(subjects, at_the_limit + deviation * random.normal());
    const Outcome outcome = judge(scenario, subjects, last, settings).assertions.front().outcome;
    failed += outcome == Outcome::fails;
    held += outcome == Outcome::passes;
  }
  std::printf("%d looks at the limit: failed %.2f, held %.2f %%\n", looks, 100.0 * failed / gates,
              100.0 * held / gates);
  EXPECT_LE(failed, (0.01 + 3 * std::sqrt(0.01 * 0.99 / gates)) * gates);
  EXPECT_LE(held, (0.05 + 3 * std::sqrt(0.05 * 0.95 / gates)) * gates);
}

TEST(StoredAssertion, IsAboutTheMeanOfAllRunsUntilOneDecides) {
  for (const Expectation& assertion :
       {no_slide, fix_against_stored(Metric::step_ms_mean, Relation::at_most, 1 / 0.98)}) {
    const Scenario scenario = scenario_of_one({assertion});
    const std::vector<Subject> subjects = subjects_with_anchors(scenario);
    JudgeSettings settings{.baseline = baseline_of(scenario, quiet)};
    settings.is_kept = true;
    const auto after = [&](const std::vector<double>& earlier, double contrast) {
      settings.earlier = {.runs = 1,
                          .stored = {{name_in_files(assertion), earlier}},
                          .stored_anchors = {{name_in_files(assertion),
                                              std::vector<double>(earlier.size(), log_of_anchor)}}};
      return judge(scenario, subjects, measured(subjects, contrast), settings).assertions.front();
    };
    const AssertionVerdict both = after({1.022}, 1.018);
    EXPECT_EQ(both.outcome, Outcome::undecided);
    EXPECT_EQ(both.stored->new_runs, 2);
    EXPECT_NEAR(std::log(*both.left / *both.right), 0, 1e-3);
    EXPECT_TRUE(says(both, ", in the mean of 2 runs of this subject, against 5 stored runs"))
        << both.reason;
    EXPECT_EQ(after({1.000}, 1.018).outcome, Outcome::passes);
    EXPECT_EQ(after({1.200}, 1.000).outcome, Outcome::fails);
    // An assertion that passed fails after a run that is slower by itself, and then stays failed.
    EXPECT_EQ(after({1.000}, 1.200).outcome, Outcome::fails);
    EXPECT_EQ(after({1.000, 1.200}, 1.000).outcome, Outcome::fails);
  }
}

TEST(StoredAssertion, KeepsItsDirectionWhicheverWayItIsWritten) {
  const Expectation times = fix_against_stored(Metric::step_ms_mean, Relation::at_most, 1.02);
  EXPECT_EQ(judged(times, quiet, 1.000).outcome, Outcome::passes);
  EXPECT_EQ(judged(times, quiet, 1.050).outcome, Outcome::fails);
  Expectation turned = no_slide;
  std::swap(turned.left, turned.right);
  turned.relation = Relation::at_most;
  EXPECT_EQ(judged(turned, quiet, 1.000).outcome, Outcome::passes);
  EXPECT_EQ(judged(turned, quiet, 1.050).outcome, Outcome::fails);
  const Expectation gain = fix_against_stored(Metric::samples_per_s, Relation::greater, 1.05);
  EXPECT_EQ(judged(gain, quiet, 0.900).outcome, Outcome::passes);
  EXPECT_EQ(judged(gain, quiet, 1.000).outcome, Outcome::fails);
}

// A step that has become slower may have left its regime for that very reason.
TEST(StoredAssertion, FailsOutsideItsRegimeTooButPassesOnlyInside) {
  Scenario scenario =
      scenario_of_one({no_slide, assertion("line", {{of("fix", Metric::step_ms_mean)}},
                                           Relation::at_most, {{1.0}})});
  scenario.regime = {
      assertion("short", {{of("fix", Metric::step_ms_mean)}}, Relation::at_most, {{1e-9}})};
  const std::vector<Subject> subjects = subjects_with_anchors(scenario);
  const JudgeSettings settings{.baseline = baseline_of(scenario, quiet)};
  const Verdict slower = judge(scenario, subjects, measured(subjects, 1.05), settings);
  EXPECT_EQ(slower.regime[0].outcome, Outcome::fails);
  EXPECT_EQ(slower.assertions[0].outcome, Outcome::fails);
  EXPECT_TRUE(says(slower.assertions[0], "; outside its regime too: "))
      << slower.assertions[0].reason;
  EXPECT_EQ(slower.assertions[1].outcome, Outcome::skipped);
  EXPECT_EQ(slower.outcome, Outcome::fails);
  const Verdict as_fast = judge(scenario, subjects, measured(subjects, 1.0), settings);
  EXPECT_EQ(as_fast.assertions[0].outcome, Outcome::skipped);
}

TEST(StoredAssertion, IsEqualOnlyInsideBothLimits) {
  const Expectation same = fix_against_stored(Metric::step_ms_mean, Relation::about, 1, 0.02);
  EXPECT_EQ(judged(same, quiet, 1.000).outcome, Outcome::passes);
  EXPECT_EQ(judged(same, quiet, 1.040).outcome, Outcome::fails);
  EXPECT_EQ(judged(same, quiet, 0.960).outcome, Outcome::fails);
  EXPECT_EQ(judged(same, quiet, 1.019).outcome, Outcome::undecided);
}

TEST(StoredAssertion, ShowsBothSidesInTheMetricsUnit) {
  const AssertionVerdict verdict =
      judged(fix_against_stored(Metric::step_ms_mean, Relation::at_most, 1.02), quiet, 1.01);
  EXPECT_NEAR(*verdict.left, 1e-4 * std::exp(1.01), 1e-8);
  EXPECT_NEAR(*verdict.right, 1.02e-4 * std::exp(1.0), 1e-8);
}

TEST(StoredAssertion, ComparesPercentiles) {
  const Expectation tail = fix_against_stored(Metric::step_ms_p95, Relation::at_most, 1.02);
  EXPECT_EQ(judged(tail, quiet, 1.000).outcome, Outcome::passes);
  EXPECT_EQ(judged(tail, quiet, 1.050).outcome, Outcome::fails);
}

TEST(StoredAssertion, SaysWhenThePercentileWasNotStored) {
  const Scenario scenario =
      scenario_of_one({fix_against_stored(Metric::step_ms_p95, Relation::at_most, 1.02)});
  Baseline baseline = baseline_of(scenario, quiet);
  for (StoredRun& run : baseline.runs) run.variants[0].times.resize(1);
  const AssertionVerdict verdict =
      judged(scenario, baseline, measured(subjects_with_anchors(scenario), 1));
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(verdict.reason, "step_ms_p95 is not known, of this run or of the stored ones");
}

TEST(StoredAssertion, WantsAsManyRoundsAsAStoredRunHas) {
  const Scenario scenario = scenario_of_one({no_slide});
  const AssertionVerdict verdict = judged(scenario, baseline_of(scenario, quiet),
                                          measured(subjects_with_anchors(scenario), 5, 11));
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_TRUE(says(verdict, "11 rounds were measured, but a run is compared by its first 12"));
}

// The budget must be checked against the rounds that a forecast promises.
TEST(StoredAssertion, IsForecastToTakeAsManyRoundsAsTheRunMustHave) {
  ExpectedCost expected;
  expected.round = std::chrono::seconds(1);
  expected.fewest_rounds = rounds_of_stored_run;
  const auto made = forecast(expected, scenario_of_one({no_slide}), {});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->rounds_to_hold, rounds_of_stored_run);
}

TEST(StoredAssertion, LooksAtTheFirstRoundsOnly) {
  const Scenario scenario = scenario_of_one({no_slide});
  const std::vector<Subject> subjects = subjects_with_anchors(scenario);
  Measurement measurement = measured(subjects, 1.0);
  for (const Round& round : measured(subjects, 9.0).rounds) measurement.rounds.push_back(round);
  EXPECT_EQ(judged(scenario, baseline_of(scenario, quiet), measurement).outcome, Outcome::passes);
}

struct Elsewhere {
  const char* name;
  void (*change)(DeviceIdentity&);
  std::string reason;
  std::string upgraded = {};
};

class OtherEnvironment : public testing::TestWithParam<Elsewhere> {};

TEST_P(OtherEnvironment, IsNotComparableAndNamesTheKeyWithBothValues) {
  const Scenario scenario = scenario_of_one({no_slide});
  Measurement measurement = measured(subjects_with_anchors(scenario), 5);
  GetParam().change(measurement.device);
  const AssertionVerdict verdict = judged(scenario, baseline_of(scenario, quiet), measurement);
  EXPECT_EQ(verdict.outcome, Outcome::not_comparable);
  const bool is_another_device = std::string_view(GetParam().name) == "uuid";
  EXPECT_EQ(verdict.reason,
            GetParam().reason +
                "; a step takes 54.49x the time of the latest of them (272.4 us -> "
                "14.84 ms)" +
                (is_another_device
                     ? "; `stepgate accept scenarios/small.toml` stores a run of this one"
                     : "; `stepgate gate --base BASE --head HEAD scenarios/small.toml` compares "
                       "two builds "
                       "without them, `stepgate accept scenarios/small.toml --reset TEXT` stores "
                       "runs to compare with from now on") +
                GetParam().upgraded);
}

INSTANTIATE_TEST_SUITE_P(
    Keys, OtherEnvironment,
    testing::Values(
        Elsewhere{"kind", [](DeviceIdentity& device) { device.kind = DeviceKind::simulated; },
                  "the device kind is 'simulated', the stored runs have 'cuda'"},
        Elsewhere{"gpu", [](DeviceIdentity& device) { device.name = "NVIDIA H100"; },
                  "the GPU is 'NVIDIA H100', the stored runs have 'NVIDIA H200'"},
        Elsewhere{"driver", [](DeviceIdentity& device) { device.driver = "590.1"; },
                  "the driver branch is '590', the stored runs have '580'",
                  "; upgraded since: driver 580.159.04 -> 590.1, and docs/ci.md, \"I upgraded\", "
                  "says how to compare both"},
        Elsewhere{"runtime", [](DeviceIdentity& device) { device.runtime = "13.1"; },
                  "the CUDA runtime is '13.1', the stored runs have '13.0'",
                  "; upgraded since: CUDA runtime 13.0 -> 13.1, and docs/ci.md, \"I upgraded\", "
                  "says how to compare both"},
        Elsewhere{"compute", [](DeviceIdentity& device) { device.compute_capability = 10; },
                  "the compute capability is '10.0', the stored runs have '9.0'"},
        Elsewhere{"memory", [](DeviceIdentity& device) { device.memory_bytes >>= 1; },
                  "the device memory in MiB is '71680', the stored runs have '143360'"},
        Elsewhere{"power", [](DeviceIdentity& device) { device.power_limit = "500 W"; },
                  "the power limit is '500 W', the stored runs have '700 W'"},
        Elsewhere{"pcie", [](DeviceIdentity& device) { device.pcie = "4 x16"; },
                  "the PCIe link is '4 x16', the stored runs have '5 x16'"},
        Elsewhere{"cpu", [](DeviceIdentity& device) { device.cpu = "another CPU"; },
                  "the CPU is 'another CPU', the stored runs have 'a CPU'"},
        Elsewhere{"ecc",
                  [](DeviceIdentity& device) {
                    device.keys = {{"ecc", "off"}};
                  },
                  "the ECC is 'off', the stored runs have 'on'"},
        Elsewhere{"uuid", [](DeviceIdentity& device) { device.uuid = "GPU-2"; },
                  "the GPU's UUID is 'GPU-2', the stored runs have 'GPU-1', and runs of other "
                  "devices count only when they come from at least 3"}),
    [](const auto& key) { return key.param.name; });

TEST(StoredAssertion, NamesWhatWasUpgradedSinceTheRunsWereStored) {
  const Scenario scenario = scenario_of_one({no_slide});
  Baseline baseline = baseline_of(scenario, quiet);
  for (StoredRun& run : baseline.runs) {
    run.environment.driver = "580.65.06";
    run.environment.cublas = "13.0.2";
  }
  Measurement now = measured(subjects_with_anchors(scenario), 1, rounds_of_stored_run, 2);
  now.device.driver = "580.95.05";
  const AssertionVerdict same_branch = judged(scenario, baseline, now);
  EXPECT_EQ(same_branch.outcome, Outcome::machine_slower);
  EXPECT_TRUE(says(same_branch,
                   "; upgraded since: driver 580.65.06 -> 580.95.05, and docs/ci.md, \"I "
                   "upgraded\", says how to compare both"))
      << same_branch.reason;
  now.device.keys.push_back({"cublas", "13.1.0"});
  const AssertionVerdict other_blas = judged(scenario, baseline, now);
  EXPECT_EQ(other_blas.outcome, Outcome::not_comparable);
  EXPECT_TRUE(says(other_blas, "the cuBLAS is '13.1.0', the stored runs have '13.0.2'"))
      << other_blas.reason;
  EXPECT_TRUE(says(other_blas, "cuBLAS 13.0.2 -> 13.1.0")) << other_blas.reason;
}

TEST(MatchingRuns, IgnoreWhatEitherSideDoesNotKnowAndTheDriversLastNumbers) {
  const Scenario scenario = scenario_of_one({no_slide});
  Measurement measurement = measured(subjects_with_anchors(scenario), 1);
  measurement.device.power_limit.clear();
  measurement.device.driver = "580.200";
  EXPECT_EQ(judged(scenario, baseline_of(scenario, quiet), measurement).outcome, Outcome::passes);
}

TEST(MatchingRuns, PoolDevicesOnceThereAreThreeAndCountThese) {
  const Scenario scenario = scenario_of_one({no_slide});
  Measurement measurement = measured(subjects_with_anchors(scenario), 1);
  measurement.device.uuid = "GPU-9";
  Baseline baseline = baseline_of(scenario, quiet);
  baseline.runs[0].environment.uuid = "GPU-2";
  EXPECT_EQ(judged(scenario, baseline, measurement).outcome, Outcome::not_comparable);
  baseline.runs[1].environment.uuid = "GPU-3";
  const AssertionVerdict pooled = judged(scenario, baseline, measurement);
  EXPECT_EQ(pooled.stored->runs, 5);
  EXPECT_EQ(pooled.stored->unit, StoredUnit::device);
  EXPECT_EQ(pooled.stored->runs_of_units, (std::vector<std::int64_t>{3, 1, 1}));
  EXPECT_TRUE(says(pooled, " against 5 stored runs of 3 devices, which differ by "))
      << pooled.reason;
}

TEST(MatchingRuns, AreThoseOfADeviceThatIsKnownWhateverOthersSay) {
  const Scenario scenario = scenario_of_one({no_slide});
  const Measurement measurement = measured(subjects_with_anchors(scenario), 1);
  std::vector<double> runs = quiet;
  runs.insert(runs.end(), {1.2, 1.3, 1.4});
  Baseline baseline = baseline_of(scenario, runs);
  for (std::size_t other = 5; other < 8; ++other)
    baseline.runs[other].environment.uuid = "GPU-" + std::to_string(other);
  const AssertionVerdict own = judged(scenario, baseline, measurement);
  EXPECT_EQ(own.stored->unit, StoredUnit::session);
  EXPECT_EQ(own.stored->runs, 5);
  EXPECT_EQ(own.outcome, Outcome::passes) << own.reason;
  baseline.runs.erase(baseline.runs.begin());
  EXPECT_EQ(judged(scenario, baseline, measurement).stored->unit, StoredUnit::device);
}

TEST(MatchingRuns, TakeThisDevicesRunsAloneFromTwoDevices) {
  const Scenario scenario = scenario_of_one({no_slide});
  Baseline baseline = baseline_of(scenario, quiet);
  baseline.runs[0].environment.uuid = "GPU-2";
  const Measurement measurement = measured(subjects_with_anchors(scenario), 1);
  EXPECT_EQ(judged(scenario, baseline, measurement).stored->runs, 4);
}

TEST(MatchingRuns, PassOverRunsOfAnotherDriver) {
  const Scenario scenario = scenario_of_one({no_slide});
  Baseline baseline = baseline_of(scenario, quiet);
  baseline.runs[0].environment.driver = "570.1";
  const Measurement measurement = measured(subjects_with_anchors(scenario), 1);
  EXPECT_EQ(judged(scenario, baseline, measurement).stored->runs, 4);
}

TEST(MatchingRuns, EndWhereTheKnobsChange) {
  Scenario scenario = scenario_of_one({no_slide});
  const Baseline baseline = baseline_of(scenario, quiet);
  scenario.variants[0].knobs.batch.size = 65;
  const Measurement measurement = measured(subjects_with_anchors(scenario), 1);
  const AssertionVerdict verdict = judged(scenario, baseline, measurement);
  EXPECT_EQ(verdict.outcome, Outcome::not_comparable);
  EXPECT_TRUE(says(verdict, "the knobs of 'fix' are not those of the stored runs"));
}

TEST(MatchingRuns, EndWhereTheAnchorChanges) {
  const Scenario scenario = scenario_of_one({no_slide});
  Baseline baseline = baseline_of(scenario, quiet);
  for (StoredRun& run : baseline.runs) run.variants[0].anchor = "launch.0";
  const Measurement measurement = measured(subjects_with_anchors(scenario), 1);
  EXPECT_TRUE(says(judged(scenario, baseline, measurement),
                   "the anchor is 'launch.1', the stored runs have 'launch.0'"));
}

TEST(MatchingRuns, BeginWithTheLastBaselineResetAmongThem) {
  const Scenario scenario = scenario_of_one({no_slide});
  const Measurement measurement = measured(subjects_with_anchors(scenario), 1);
  std::vector<double> runs = quiet;
  runs.insert(runs.begin(), {0.5, 0.5, 0.5});
  Baseline baseline = baseline_of(scenario, runs);
  EXPECT_NE(judged(scenario, baseline, measurement).outcome, Outcome::passes);
  baseline.runs[3].baseline_reset = "the loader waits for its disk now";
  const AssertionVerdict verdict = judged(scenario, baseline, measurement);
  EXPECT_EQ(verdict.outcome, Outcome::passes) << verdict.reason;
  EXPECT_EQ(verdict.stored->runs, 5);
  // Runs from before the baseline reset, with another driver, do not count.
  baseline.runs.push_back(baseline.runs.back());
  baseline.runs.back().environment.driver = "590.1";
  baseline.runs.back().baseline_reset = "driver 590";
  EXPECT_EQ(judged(scenario, baseline, measurement).stored->runs, 5);
}

TEST(BaselineReset, IsNamedForAnotherEnvironmentOrOtherKnobsAndForNothingElse) {
  Scenario scenario = scenario_of_one({no_slide});
  const std::vector<Subject> subjects = subjects_with_anchors(scenario);
  Measurement measurement = measured(subjects, 1);
  Baseline baseline = baseline_of(scenario, quiet);
  const auto reason = [&] {
    return reason_for_baseline_reset(scenario, subjects, measurement, baseline).value_or("");
  };
  EXPECT_EQ(reason(), "");
  measurement.device.uuid = "GPU-2";
  EXPECT_EQ(reason(), "") << "one more device of the model";
  measurement.device.driver = "590.1";
  EXPECT_EQ(reason(),
            "the driver branch is '590', the stored runs have '580'; a step takes 0.998x the time "
            "of the latest of them (272.4 us -> 271.8 us)");
  measurement.device = machine();
  scenario.variants[0].knobs.batch.size = 65;
  EXPECT_EQ(reason(), "the knobs of 'fix' are not those of the stored runs");
  measurement.traced.emplace().calibrated.emplace();
  EXPECT_EQ(reason(), "") << "every run is given its own";
  measurement.traced.reset();
  for (StoredRun& run : baseline.runs) run.variants[0].name = "other";
  EXPECT_EQ(reason(), "") << "a variant that is new";
  baseline.runs.clear();
  EXPECT_EQ(reason(), "");
}

TEST(MatchingRuns, AreNoneInABaselineWithoutRunsOrWithoutTheVariant) {
  const Scenario scenario = scenario_of_one({no_slide});
  const Measurement measurement = measured(subjects_with_anchors(scenario), 1);
  Baseline baseline = baseline_of(scenario, quiet);
  for (StoredRun& run : baseline.runs) run.variants[0].name = "other";
  EXPECT_TRUE(says(judged(scenario, baseline, measurement), "hold no variant 'fix'"));
  baseline.runs.clear();
  EXPECT_TRUE(says(judged(scenario, baseline, measurement), "the baseline holds no runs"));
}

TEST(StoredCounts, AreComparedExactlyOnAnyMachine) {
  const Scenario scenario =
      scenario_of_one({fix_against_stored(Metric::launches_per_step, Relation::at_most, 1)});
  Measurement measurement = measured(subjects_with_anchors(scenario), 1, 0);
  measurement.device.name = "another GPU";
  Baseline baseline = baseline_of(scenario, {1});
  EXPECT_EQ(judged(scenario, baseline, measurement).outcome, Outcome::passes);
  for (StoredCount& count : baseline.runs[0].variants[0].counts) count.value -= 1;
  const AssertionVerdict verdict = judged(scenario, baseline, measurement);
  EXPECT_EQ(verdict.outcome, Outcome::fails);
  EXPECT_EQ(verdict.reason, "26; the limit is 25");
}

TEST(StoredCounts, AreThoseOfTheLatestRunWithTheSameKnobs) {
  Scenario scenario =
      scenario_of_one({fix_against_stored(Metric::launches_per_step, Relation::equal, 1)});
  Baseline baseline = baseline_of(scenario, {1, 1});
  baseline.runs[0].variants[0].counts[0].value = 1;
  const Measurement measurement = measured(subjects_with_anchors(scenario), 1, 0);
  EXPECT_EQ(judged(scenario, baseline, measurement).outcome, Outcome::passes);
  scenario.variants[0].knobs.batch.size = 65;
  EXPECT_EQ(judged(scenario, baseline, measurement).outcome, Outcome::not_comparable);
}

TEST(StoredCounts, AreComparedWithWhatTheTraceOfThisRunCounted) {
  const Scenario scenario =
      scenario_of_one({fix_against_stored(Metric::host_waits_per_step, Relation::at_most, 1)});
  Measurement measurement = measured(subjects_with_anchors(scenario), 1, 0);
  const Baseline baseline = baseline_of(scenario, {1});
  const AssertionVerdict without = judged(scenario, baseline, measurement);
  EXPECT_EQ(without.outcome, Outcome::undecided);
  EXPECT_EQ(without.reason, "not traced (--no-trace); the plan says 0; the limit is 0");
  measurement.traced = traced_rounds({traced_step({}, {{Metric::host_waits_per_step, 0}})});
  EXPECT_EQ(judged(scenario, baseline, measurement).outcome, Outcome::passes);
  measurement.traced = traced_rounds({traced_step({}, {{Metric::host_waits_per_step, 1}})});
  EXPECT_EQ(judged(scenario, baseline, measurement).outcome, Outcome::fails);
}

}  // namespace
}  // namespace stepgate
