// SPDX-License-Identifier: MIT
// Tests outcomes and reasons on fake devices with known means, noise and outliers.
#include "judge/judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/stats/e_process.h"
#include "judge/assertion_test.h"
#include "judge/assertions/reasons.h"
#include "judge/testing/fake_scenario.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;
using testing::Message;

Outcome outcome_of(const Scenario& scenario, double fix_ratio, std::uint64_t seed) {
  Script script;
  script.step_time = noisy(fix_ratio, seed);
  return measure_and_judge(scenario, script, seed).verdict.outcome;
}

TEST(Judge, NeverFailsIdenticalCodeAtHalfAPercent) {
  const Scenario scenario =
      scenario_of({fix_against_baseline(Metric::step_ms_mean, Relation::at_most, 1.005)});
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_NE(outcome_of(scenario, 1.0, seed), Outcome::fails) << "seed " << seed;
  }
}

TEST(Judge, FailsAFivePercentSlowdown) {
  const Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 0.995)});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(outcome_of(scenario, 1.05, seed), Outcome::fails) << "seed " << seed;
  }
}

TEST(Judge, ShowsASpeedupInFewRounds) {
  const Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  Script script;
  script.step_time = noisy(1 / 1.3, 1);
  const Judged judged = measure_and_judge(scenario, script, 1);
  ASSERT_EQ(judged.verdict.outcome, Outcome::passes);
  EXPECT_LE(judged.verdict.rounds, 8);
  EXPECT_FALSE(judged.measurement.budget_spent);
  const AssertionVerdict& line = judged.verdict.assertions.front();
  ASSERT_TRUE(line.timed && line.timed->shown.low);
  EXPECT_NEAR(line.timed->ratio * 1.05, 1.3, 0.06);  // five rounds with 1 % noise
  EXPECT_FALSE(line.timed->interval) << "five rounds have a bound on one side";
  EXPECT_GT(*line.timed->shown.low, 1);
  EXPECT_LT(*line.timed->shown.low, line.timed->ratio);
  EXPECT_NE(line.reason.find("in a typical round, at least 1."), std::string::npos) << line.reason;
  EXPECT_NE(line.reason.find("by a one-sided 95 % bound over 5 rounds"), std::string::npos)
      << line.reason;
  EXPECT_EQ(std::ssize(line.timed->contrasts), judged.verdict.rounds);
  EXPECT_NE(line.reason.find("the limit is 1.05x"), std::string::npos) << line.reason;
}

TEST(Judge, IsUndecidedWhenTheLimitIsTheTruthAndTheBudgetIsSpent) {
  Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1)});
  scenario.measure.rounds = 12;
  Script script;
  script.step_time = noisy(1.0, 4);
  const Judged judged = measure_and_judge(scenario, script, 4);
  EXPECT_EQ(judged.verdict.outcome, Outcome::undecided);
  EXPECT_EQ(judged.verdict.rounds, 12);
  const std::string& reason = judged.verdict.assertions.front().reason;
  EXPECT_NE(reason.find("would have shown"), std::string::npos) << reason;
}

TEST(Judge, RefusesRoundsThatCannotReachAVerdict) {
  Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  scenario.measure.rounds = 3;
  Script script;
  script.step_time = noisy(1 / 1.3, 1);
  const Judged judged = measure_and_judge(scenario, script, 1);
  EXPECT_TRUE(judged.measurement.rounds.empty());
  EXPECT_FALSE(judged.verdict.broken);
  EXPECT_EQ(judged.verdict.outcome, Outcome::undecided);
  EXPECT_EQ(judged.verdict.assertions.front().reason,
            "'measure.rounds' allows 3 rounds, and no verdict takes fewer than 5; raise it");
}

TEST(Judge, RefusesSecondsThatCannotReachAVerdict) {
  Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  scenario.measure.max_seconds = 0.5;
  Script script;
  script.step_time = noisy(1 / 1.3, 1);
  const Judged judged = measure_and_judge(scenario, script, 1);
  EXPECT_TRUE(judged.measurement.rounds.empty());
  EXPECT_FALSE(judged.verdict.broken);
  EXPECT_EQ(judged.verdict.outcome, Outcome::undecided);
  const std::string reason = judged.verdict.assertions.front().reason;
  EXPECT_NE(reason.find("its 0.5 s have room for"), std::string::npos) << reason;
  EXPECT_NE(reason.find("raise 'measure.max_seconds' or --budget to"), std::string::npos) << reason;
}

TEST(Judge, AsksForNoMoreRoundsThanTheAssertionsNeed) {
  const Scenario timed =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  const Scenario counted_only = scenario_of({assertion(
      "no_waits", {{of("fix", Metric::host_waits_per_step)}}, Relation::equal, {{0.0}})});
  EXPECT_EQ(fewest_rounds_to_hold(timed, {}), 5);
  EXPECT_EQ(fewest_rounds_to_hold(counted_only, {}), 1);
  EXPECT_EQ(fewest_rounds_to_refute(timed, {}), 7);
  JudgeSettings stricter = {};
  stricter.alpha = 0.01 / 50;
  EXPECT_EQ(fewest_rounds_to_refute(timed, stricter), 13);
  EXPECT_EQ(fewest_rounds_to_hold(timed, stricter), 5) << "what a suite shares is alpha alone";
}

TEST(Judge, SharesAlphaOutOverTheComparisonsOfASuite) {
  const Scenario two =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05),
                   fix_against_baseline(Metric::step_ms_mean, Relation::at_most, 1.05)});
  const Scenario one =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05),
                   assertion("no_waits", {{of("fix", Metric::host_waits_per_step)}},
                             Relation::equal, {{0.0}})});
  EXPECT_DOUBLE_EQ(suite_settings(std::vector{&one}).alpha, 0.01);
  const Scenario traced =
      scenario_of({fix_against_baseline(Metric::gpu_idle, Relation::at_most, 1)});
  EXPECT_EQ(suite_settings(std::vector{&two, &traced}).suite_lines, 3);
  const JudgeSettings settings = suite_settings(std::vector{&two, &one});
  EXPECT_DOUBLE_EQ(settings.alpha, 0.9 * 0.01 / 3);
  EXPECT_EQ(settings.suite_lines, 3);
}

// A level has no error rate, so it takes no share of alpha.
TEST(Judge, GivesNoAlphaToALevel) {
  const Expectation level =
      assertion("level", {{of("fix", Metric::step_ms_mean)}}, Relation::at_most, {{0.002}});
  const Expectation tail = assertion("tail", {{of("fix", Metric::step_ms_p95)}}, Relation::at_most,
                                     {{1.2, of("fix", Metric::step_ms_p50)}});
  const Expectation traced =
      assertion("idle", {{of("fix", Metric::gpu_idle)}}, Relation::at_most, {{0.05}});
  const Scenario scenario = scenario_of(
      {level, tail, traced, fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1)});
  EXPECT_EQ(suite_settings(std::vector{&scenario}).suite_lines, 1);
  EXPECT_EQ(fewest_rounds_to_hold(scenario_of({level}), {}), fewest_rounds_without_randomisation);
}

TEST(Judge, DecidesAboutInBothDirections) {
  const Scenario scenario =
      scenario_of({fix_against_baseline(Metric::step_ms_mean, Relation::about, 1, 0.03)});
  EXPECT_EQ(outcome_of(scenario, 1.0, 2), Outcome::passes);
  EXPECT_EQ(outcome_of(scenario, 1.1, 2), Outcome::fails);
  EXPECT_EQ(outcome_of(scenario, 0.9, 2), Outcome::fails);
}

TEST(Judge, ComparesCountsExactly) {
  const Expectation none =
      assertion("no_waits", {{of("fix", Metric::host_waits_per_step)}}, Relation::equal, {{0.0}});
  const Expectation as_many =
      assertion("as_many", {{of("fix", Metric::host_waits_per_step)}}, Relation::at_least,
                {{of("baseline", Metric::host_waits_per_step)}});
  const Expectation sum =
      assertion("memory", {{of("baseline", Metric::peak_reserved)}}, Relation::at_most,
                {{of("fix", Metric::peak_reserved)}, {32.0, PlanSize::batch_bytes}});
  Script script;
  script.step_time = noisy(1, 1);
  const Verdict verdict = measure_and_judge(scenario_of({none, as_many, sum}), script, 1).verdict;
  EXPECT_EQ(verdict.assertions[0].outcome, Outcome::passes);
  EXPECT_EQ(verdict.assertions[1].outcome, Outcome::fails);
  EXPECT_EQ(verdict.assertions[1].reason, "0; the limit is 1");
  EXPECT_EQ(verdict.assertions[2].outcome, Outcome::passes);
  EXPECT_EQ(verdict.assertions[2].reason, "64 MiB; the limit is 64 MiB");
  EXPECT_EQ(verdict.outcome, Outcome::fails);
}

TEST(Judge, KnowsThatAStepOfOneRankCommunicatesWithNobody) {
  Script script;
  script.step_time = noisy(1, 1);
  const Verdict verdict =
      measure_and_judge(
          scenario_of({assertion("counted", {{of("fix", Metric::all_reduces_per_step)}},
                                 Relation::equal, {{0.0}}),
                       assertion("planned", {{of("fix", Metric::wire_bytes_per_step)}},
                                 Relation::equal, {{0.0}})}),
          script, 1)
          .verdict;
  for (const AssertionVerdict& line : verdict.assertions)
    EXPECT_EQ(line.outcome, Outcome::passes) << line.name << ": " << line.reason;
}

// Two programs without plans have no known counts but their waits.
TEST(Judge, DecidesWhatNobodyHasPlanned) {
  const std::vector<Subject> programs{
      {.name = "baseline", .counts = {{Metric::host_waits_per_step, 1}}},
      {.name = "fix", .counts = {{Metric::host_waits_per_step, 0}}}};
  const Scenario scenario =
      scenario_of({fix_against_baseline(Metric::step_ms_mean, Relation::at_most, 0.9),
                   fix_against_baseline(Metric::host_waits_per_step, Relation::less, 1),
                   fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.1)});
  Script script;
  script.step_time = noisy(1 / 1.3, 1);
  const Verdict verdict =
      measure_and_judge(scenario, script, 1, traced_by_script(), programs).verdict;
  EXPECT_FALSE(verdict.broken);
  EXPECT_EQ(verdict.assertions[0].outcome, Outcome::passes) << verdict.assertions[0].reason;
  EXPECT_EQ(verdict.assertions[1].outcome, Outcome::passes) << verdict.assertions[1].reason;
  EXPECT_EQ(verdict.assertions[2].outcome, Outcome::undecided);
  EXPECT_EQ(verdict.assertions[2].reason, "the rounds of 'fix' do not tell its samples_per_s");
  EXPECT_NE(verdict.notes.front().find("what they compute is not known"), std::string::npos)
      << verdict.notes.front();
  EXPECT_FALSE(verdict.variants[0].samples_per_second);
}

TEST(Judge, SkipsTimedAssertionsOutsideTheRegimeButDecidesPlans) {
  const auto share = [](double at_least) {
    return assertion("host_bound", {{of("baseline", Metric::host_share)}}, Relation::at_least,
                     {{at_least}});
  };
  const std::vector<Expectation> expect{
      fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05),
      assertion("no_waits", {{of("fix", Metric::host_waits_per_step)}}, Relation::equal, {{0.0}})};
  Script script;  // a host share of 25 %
  script.step_time = noisy(1 / 1.3, 1);
  const Verdict outside = measure_and_judge(scenario_of(expect, {share(0.5)}), script, 1).verdict;
  EXPECT_EQ(outside.regime[0].outcome, Outcome::fails);
  EXPECT_EQ(outside.regime[0].reason.substr(0, 4), "25 %") << outside.regime[0].reason;
  EXPECT_EQ(outside.assertions[0].outcome, Outcome::skipped);
  EXPECT_EQ(outside.assertions[0].reason.find("outside its regime"), 0U);
  EXPECT_EQ(outside.assertions[1].outcome, Outcome::passes);
  EXPECT_EQ(outside.outcome, Outcome::skipped);
  const Verdict inside = measure_and_judge(scenario_of(expect, {share(0.2)}), script, 1).verdict;
  EXPECT_EQ(inside.outcome, Outcome::passes);
  script.host_share = -1;
  const Verdict unknown = measure_and_judge(scenario_of(expect, {share(0.2)}), script, 1).verdict;
  EXPECT_EQ(unknown.regime[0].reason, "this device does not know host time");
  EXPECT_EQ(unknown.assertions[0].outcome, Outcome::undecided);
}

TEST(Judge, DecidesPercentilesFromTheSingleSteps) {
  const Scenario scenario =
      scenario_of({fix_against_baseline(Metric::step_ms_p95, Relation::at_most, 1.5)});
  Script script;  // the fix has the same median, but every eighth step takes twice as long
  script.step_time = [](const std::string& variant, std::int64_t step) -> std::chrono::nanoseconds {
    return variant == "fix" && step % 8 == 0 ? 2ms : 1ms;
  };
  EXPECT_EQ(measure_and_judge(scenario, script, 1).verdict.outcome, Outcome::fails);
}

TEST(RoundValue, OfSlowStepsIsTheLongestOneAndTheShareBeyondTwiceTheMedian) {
  Round round;
  round.segments = {{.variant = 0, .steps = 4, .step_times = {10ms, 10ms, 20ms, 11ms}},
                    {.variant = 1, .steps = 1, .step_times = {70ms}},
                    {.variant = 0, .steps = 4, .step_times = {10ms, 50ms, 9ms, 10ms}}};
  EXPECT_EQ(round_value(round, 0, 1, Metric::step_ms_max), 0.05);
  EXPECT_EQ(round_value(round, 0, 1, Metric::slow_step_share), 1 / 8.0) << "20 is twice 10";
  EXPECT_EQ(round_value(round, 1, 1, Metric::slow_step_share), 0);
  round.segments[1].step_times.clear();
  EXPECT_EQ(round_value(round, 1, 1, Metric::step_ms_max), std::nullopt);
}

// Every fifth step of the baseline takes ten times as long.
TEST(Judge, DecidesAssertionsAboutSlowStepsWithoutClaimingARate) {
  Script script;
  script.step_time = [usual = noisy(1, 3, 0.01, 0)](const std::string& variant,
                                                    std::int64_t step) mutable {
    const auto time = usual(variant, step);
    return variant == "baseline" && step % 5 == 3 ? 10 * time : time;
  };
  Scenario scenario = scenario_of(
      {assertion("rare", {{of("baseline", Metric::slow_step_share)}}, Relation::at_least, {{0.01}}),
       assertion("never", {{of("fix", Metric::slow_step_share)}}, Relation::at_most, {{0.001}}),
       fix_against_baseline(Metric::slow_step_share, Relation::at_most, 0.5),
       fix_against_baseline(Metric::step_ms_max, Relation::at_most, 0.5),
       fix_against_baseline(Metric::step_ms_max, Relation::at_least, 0.5)});
  scenario.measure.interleave = Interleave::segments;
  const Verdict verdict = measure_and_judge(scenario, script, 5).verdict;
  std::vector<Outcome> outcomes;
  for (const AssertionVerdict& line : verdict.assertions) {
    outcomes.push_back(line.outcome);
    EXPECT_FALSE(line.timed) << line.reason;
    EXPECT_NE(line.reason.find("an estimate without an error rate"), std::string::npos)
        << line.reason;
  }
  EXPECT_EQ(outcomes, (std::vector{Outcome::passes, Outcome::passes, Outcome::passes,
                                   Outcome::passes, Outcome::fails}));
  EXPECT_NE(verdict.assertions[1].reason.find("0 %"), std::string::npos)
      << verdict.assertions[1].reason;
}

TEST(Judge, CallsARunBrokenWhoseLossesDisagree) {
  Script script;
  script.step_time = noisy(1 / 1.3, 1);
  script.loss = [](const std::string& variant, std::int64_t step) {
    return variant == "fix" && step >= 20 ? 1.5F : 1.0F;
  };
  const Verdict verdict =
      measure_and_judge(
          scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)}),
          script, 1)
          .verdict;
  ASSERT_TRUE(verdict.broken);
  EXPECT_EQ(*verdict.broken,
            "variant 'fix' is another step than 'baseline': at step 20 its loss is 1.5 instead of "
            "1, and they may differ by 0.0001 of the larger");
  EXPECT_NE(verdict.outcome, Outcome::passes);
}

TEST(Judge, CallsARunBrokenWhoseStepChangesLimitsOfTheDevice) {
  Script script;
  script.step_time = noisy(1 / 1.3, 1);
  script.device_changed = [](const std::string& variant, std::int64_t step) {
    return variant == "fix" && step > 5 ? std::string("heap was 1 B and is 2 B") : std::string();
  };
  const Verdict verdict =
      measure_and_judge(
          scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)}),
          script, 1)
          .verdict;
  ASSERT_TRUE(verdict.broken);
  EXPECT_NE(verdict.broken->find("variant 'fix' may not be compared"), std::string::npos);
  EXPECT_NE(verdict.outcome, Outcome::passes);
}

TEST(Judge, SaysWhereNoLaunchOfReplacedKernelsWasAudited) {
  const Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  std::vector<Subject> subjects = counted_by_script();
  subjects[1].has_replaced_kernels = true;
  Script script;
  script.step_time = noisy(1 / 1.3, 1);
  const auto notes = [&] {
    return measure_and_judge(scenario, script, 1, traced_by_script(), subjects).verdict.notes;
  };
  const std::string note = "no launch of 'fix' was audited beside stepgate's own kernels";
  EXPECT_EQ(std::ranges::count(notes(), note), 1);
  script.audits = [](const std::string&, std::int64_t step) {
    return std::vector<LaunchAudit>{{.step = step, .operation = "norm", .kernel = "layer_norm"}};
  };
  EXPECT_EQ(std::ranges::count(notes(), note), 0);
}

TEST(Judge, NamesTheRankThatIsAnotherStep) {
  Measurement measurement;
  measurement.variants = {{.name = "baseline"}, {.name = "fix"}};
  measurement.another_step = {.variant = 1,
                              .against = 1,
                              .rank = 3,
                              .step = 7,
                              .parameter = "weight",
                              .value = 0.5,
                              .bound = 0.003,
                              .after_the_rounds = true};
  EXPECT_EQ(another_step_reason(measurement),
            "variant 'fix' is another step on rank 3 than on rank 0: begun again after the rounds, "
            "at step 7 its gradient of 'weight' differs by 50 %, and they may differ by 0.3 %");
}

TEST(Judge, NamesEveryPairThatIsNotCompared) {
  Measurement measurement;
  measurement.variants = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
  measurement.not_compared = {
      {.variants = {1, 2}, .against = {0}, .reason = "other batches"},
      {.variants = {2}, .against = {1}, .gradients_alone = true, .reason = "its graph"}};
  EXPECT_EQ(
      not_compared_notes(measurement),
      (std::vector<std::string>{
          "losses and gradients of 'b', 'c' are not compared with those of 'a': other batches",
          "gradients of 'c' are not compared with those of 'b': its graph"}));
}

TEST(Judge, LeavesTimedAssertionsUndecidedWithoutAClock) {
  Script script;
  const Verdict verdict =
      measure_and_judge(
          scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)}),
          script, 1)
          .verdict;
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(verdict.assertions[0].reason, "no round was timed on this device");
}

TEST(Judge, SaysWhatItCannotDecideYet) {
  Expectation stored = fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1);
  stored.right = {{MetricOf{"fix", Metric::samples_per_s, true}}};
  Script script;
  script.step_time = noisy(1, 1);
  const Verdict verdict = measure_and_judge(scenario_of({stored}), script, 1).verdict;
  EXPECT_EQ(verdict.assertions[0].outcome, Outcome::no_baseline);
}

TEST(Judge, SummarisesVariants) {
  Script script;
  script.step_time = [](const std::string& variant, std::int64_t) -> std::chrono::nanoseconds {
    return variant == "fix" ? 1ms : 2ms;
  };
  const Verdict verdict =
      measure_and_judge(
          scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)}),
          script, 1)
          .verdict;
  ASSERT_EQ(verdict.variants.size(), 2U);
  EXPECT_EQ(verdict.variants[0].name, "baseline");
  EXPECT_DOUBLE_EQ(verdict.variants[0].step_seconds_mean.value(), 0.002);
  EXPECT_DOUBLE_EQ(verdict.variants[1].step_seconds_p95.value(), 0.001);
  EXPECT_DOUBLE_EQ(verdict.variants[1].samples_per_second.value(), 64'000);
  EXPECT_DOUBLE_EQ(verdict.variants[1].host_share.value(), 0.25);
  EXPECT_EQ(verdict.variants[1].peak_bytes, 32 << 20);
}

TEST(Judge, SkipsEverythingWhenTheDeviceLacksARequirement) {
  Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  DeviceIdentity device;
  device.name = "small";
  device.compute_capability = 8.6;
  EXPECT_FALSE(unmet_requirement(scenario, device));
  scenario.requirements.compute = 8.6;
  EXPECT_FALSE(unmet_requirement(scenario, device));
  scenario.requirements.compute = 9.0;
  const auto reason = unmet_requirement(scenario, device);
  EXPECT_EQ(reason, "needs compute capability 9.0, small has 8.6");
  const Verdict verdict = skipped_verdict(scenario, device, *reason, {});
  EXPECT_EQ(verdict.outcome, Outcome::skipped);
  EXPECT_EQ(verdict.assertions[0].reason, *reason);
  scenario.requirements = {};
  scenario.requirements.copy_engines = 2;
  EXPECT_EQ(unmet_requirement(scenario, device), "needs 2 copy engines, small has 0");
  scenario.requirements = {};
  scenario.requirements.free_memory_bytes = 1 << 30;
  EXPECT_EQ(unmet_requirement(scenario, device),
            "needs 1 GiB of free device memory, small has 0 B");
  scenario.requirements = {};
  scenario.requirements.processors = 8;
  EXPECT_FALSE(unmet_requirement(scenario, device)) << "how many there are is not known";
  device.processors = 8;
  EXPECT_FALSE(unmet_requirement(scenario, device));
  device.processors = 7;
  EXPECT_EQ(unmet_requirement(scenario, device), "needs 8 processors, there are 7");
}

TEST(Judge, SkipsOnGpusWhatHasSlowerLinksThanTheirs) {
  Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  DeviceIdentity device;
  device.name = "a GPU";
  RanksKnobs& ranks = scenario.variants.back().knobs.ranks;
  ranks.collectives.link_gbps = 12;
  device.kind = DeviceKind::cuda;
  EXPECT_FALSE(unmet_requirement(scenario, device)) << "one rank has no link";
  ranks.count = 2;
  EXPECT_EQ(unmet_requirement(scenario, device),
            "needs --device simulated, since 'ranks.link_gbps' slows down no link of a GPU");
  device.kind = DeviceKind::simulated;
  EXPECT_FALSE(unmet_requirement(scenario, device));
}

TEST(Judge, SkipsWhatNeedsMoreGpusThanThereAreForAStepWhetherItSaysSoOrNot) {
  Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  DeviceIdentity device;
  device.gpus = 1;
  EXPECT_FALSE(unmet_requirement(scenario, device));
  scenario.variants.back().knobs.ranks.count = 4;
  EXPECT_EQ(unmet_requirement(scenario, device), "needs 4 GPUs, there is 1 for a step");
  device.gpus = 3;
  EXPECT_EQ(unmet_requirement(scenario, device), "needs 4 GPUs, there are 3 for a step");
  device.gpus = 4;
  EXPECT_FALSE(unmet_requirement(scenario, device));
  scenario.requirements.gpus = 8;
  EXPECT_EQ(unmet_requirement(scenario, device), "needs 8 GPUs, there are 4 for a step");
  device.gpus.reset();
  EXPECT_FALSE(unmet_requirement(scenario, device)) << "as many as are asked for";
}

TEST(Judge, SkipsWhatNeedsALinkThatTwoOfItsGpusDoNotHave) {
  Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05)});
  scenario.variants.back().knobs.ranks.count = 4;
  DeviceIdentity device;
  scenario.requirements.link = RequiredLink::nvlink;
  EXPECT_EQ(unmet_requirement(scenario, device),
            "needs NVLink, and how the GPUs of ranks 0 and 1 are linked is not known");
  device.link = nvlink;
  EXPECT_FALSE(unmet_requirement(scenario, device));
  device.ranks = std::vector<RankIdentity>(5);
  const std::string by(nvlink);
  for (std::size_t rank = 0; rank < 4; ++rank)
    device.ranks[rank].communication.links = {by, by, by, by, "PCIe"};
  EXPECT_FALSE(unmet_requirement(scenario, device)) << "the fifth takes no part";
  device.ranks[1].communication.links[2] = "PCIe";
  EXPECT_EQ(unmet_requirement(scenario, device),
            "needs NVLink, and the GPUs of ranks 1 and 2 are linked by PCIe");
}

TEST(Judge, RanksOutcomes) {
  const auto of_all = [](std::vector<Outcome> outcomes) {
    std::vector<AssertionVerdict> assertions(outcomes.size());
    for (std::size_t index = 0; index < outcomes.size(); ++index) {
      assertions[index].outcome = outcomes[index];
    }
    return worst(assertions);
  };
  using enum Outcome;
  EXPECT_EQ(of_all({passes, skipped, fails, undecided}), fails);
  EXPECT_EQ(of_all({passes, not_comparable, undecided}), not_comparable);
  EXPECT_EQ(of_all({undecided, skipped, passes}), undecided);
  EXPECT_EQ(of_all({machine_slower, not_comparable}), machine_slower);
  EXPECT_EQ(of_all({machine_slower, fails}), fails);
  EXPECT_EQ(of_all({no_baseline, not_comparable}), not_comparable);
  EXPECT_EQ(of_all({skipped, no_baseline}), no_baseline);
  EXPECT_EQ(of_all({passes, skipped}), skipped);
  EXPECT_EQ(of_all({passes, passes}), passes);
  EXPECT_EQ(of_all({}), undecided) << "nothing was shown";
}

}  // namespace
}  // namespace stepgate
