// SPDX-License-Identifier: MIT
// Tests assertions that traced rounds decide: counts, which must be equal in every round, and
// shares.
#include "judge/decide_by_rounds.h"

#include <gtest/gtest.h>

#include <iostream>

#include "base/random.h"
#include "judge/testing/fake_scenario.h"
#include "judge/testing/stored_runs_by_hand.h"
#include "judge/verdict/words.h"
#include "measure/trace/worst_ranks.h"

namespace stepgate {
namespace {

Expectation no_waits() {
  return assertion("no_waits", {{of("fix", Metric::host_waits_per_step)}}, Relation::equal,
                   {{0.0}});
}

Expectation share(const std::string& variant, Metric metric, Relation relation, double limit) {
  return assertion("share", {{of(variant, metric)}}, relation, {{limit}});
}

AssertionVerdict decided(const Expectation& expectation, std::optional<Traced> traced,
                         std::vector<Expectation> regime = {}) {
  Script script;
  script.step_time = noisy(1, 1);
  return measure_and_judge(scenario_of({expectation}, std::move(regime)), script, 1,
                           std::move(traced))
      .verdict.assertions.front();
}

TEST(ExactAssertion, IsDecidedByWhatTheTraceCountedNotByThePlan) {
  Traced traced = traced_by_script();
  EXPECT_EQ(decided(no_waits(), traced).outcome, Outcome::passes);
  set_values(traced, 1, Metric::host_waits_per_step, {2});
  const AssertionVerdict failed = decided(no_waits(), traced);
  EXPECT_EQ(failed.outcome, Outcome::fails);
  EXPECT_EQ(failed.reason, "2; it must be 0");
}

TEST(ExactAssertion, IsUndecidedWhenTheCountChangesFromRoundToRound) {
  Traced traced = traced_by_script();
  set_values(traced, 1, Metric::host_waits_per_step, {0, 0, 0.05});
  const AssertionVerdict verdict = decided(no_waits(), traced);
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(verdict.reason,
            "fix.host_waits_per_step is 0 in the first traced round and 0.05 in round 3: no count "
            "to rely on");
}

TEST(ExactAssertion, IsUndecidedWithoutATraceAndSaysWhatThePlanSays) {
  Traced refused;
  refused.unavailable = "another tool traces this process";
  const Expectation bad =
      assertion("bad", {{of("baseline", Metric::host_waits_per_step)}}, Relation::equal, {{0.0}});
  const AssertionVerdict unavailable = decided(bad, refused);
  EXPECT_EQ(unavailable.outcome, Outcome::undecided);
  EXPECT_EQ(unavailable.reason,
            "trace unavailable: another tool traces this process; the plan says 1; it must be 0");
  const AssertionVerdict not_traced = decided(bad, std::nullopt);
  EXPECT_EQ(not_traced.outcome, Outcome::undecided);
  EXPECT_EQ(not_traced.reason, "not traced (--no-trace); the plan says 1; it must be 0");
}

TEST(ExactAssertion, IsUndecidedWhenTheTraceDoesNotTell) {
  const Expectation polls =
      assertion("polls", {{of("fix", Metric::polls_per_step)}}, Relation::equal, {{0.0}});
  const AssertionVerdict verdict = decided(polls, traced_by_script());
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(verdict.reason, "the traced steps of 'fix' do not tell its polls_per_step");
}

TEST(ExactAssertion, LeavesTimedOnesAndPlansAloneWhenThereIsNoTrace) {
  Script script;
  script.step_time = noisy(1 / 1.3, 1);
  Traced refused;
  refused.unavailable = "no permission";
  const Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05),
                   assertion("memory", {{of("fix", Metric::peak_live)}}, Relation::less,
                             {{of("baseline", Metric::peak_live)}})});
  EXPECT_EQ(measure_and_judge(scenario, script, 1, refused).verdict.outcome, Outcome::passes);
}

TEST(TracedAssertion, PassesForAShareOfNothing) {
  const AssertionVerdict verdict =
      decided(share("fix", Metric::gpu_idle, Relation::at_most, 0.05), traced_by_script());
  EXPECT_EQ(verdict.outcome, Outcome::passes);
  EXPECT_EQ(verdict.reason.substr(0, 5), "0 %, ") << verdict.reason;
  EXPECT_NE(verdict.reason.find(
                "in 7 traced rounds, an estimate without an error rate; the limit is 5 %"),
            std::string::npos)
      << verdict.reason;
}

TEST(TracedAssertion, TellsTheValueBesideALimitOfNothing) {
  const auto reason = [](const char* variant, Relation relation) {
    return decided(share(variant, Metric::gpu_idle, relation, 0), traced_by_script()).reason;
  };
  const double idle =
      *decided(share("baseline", Metric::gpu_idle, Relation::at_least, 0), traced_by_script()).left;
  EXPECT_EQ(reason("baseline", Relation::at_least).find(in_words(idle, MetricUnit::ratio) + ", "),
            0u)
      << reason("baseline", Relation::at_least);
  EXPECT_EQ(reason("baseline", Relation::at_most).find(in_words(idle, MetricUnit::ratio) + ", "),
            0u)
      << "what fails as well";
  EXPECT_EQ(reason("fix", Relation::at_most).find("0 %, 0 % to 0 % "), 0u)
      << reason("fix", Relation::at_most);
}

TEST(TracedAssertion, FailsByAShareBeyondTheLimit) {
  EXPECT_EQ(
      decided(share("baseline", Metric::gpu_idle, Relation::at_most, 0.05), traced_by_script())
          .outcome,
      Outcome::fails);
}

TEST(TracedAssertion, PassesForAShareOfEverything) {
  Traced traced = traced_by_script();
  set_values(traced, 1, Metric::copy_overlap, {1});
  const AssertionVerdict verdict =
      decided(share("fix", Metric::copy_overlap, Relation::at_least, 0.8), traced);
  EXPECT_EQ(verdict.outcome, Outcome::passes);
  EXPECT_EQ(verdict.reason.substr(0, 7), "100 %, ") << verdict.reason;
}

TEST(TracedAssertion, ComparesTwoVariantsEvenWhereOneHasNothing) {
  const Expectation less = assertion("less", {{of("fix", Metric::gpu_idle)}}, Relation::less,
                                     {{of("baseline", Metric::gpu_idle)}});
  const AssertionVerdict holds = decided(less, traced_by_script());
  EXPECT_EQ(holds.outcome, Outcome::passes);
  EXPECT_EQ(holds.reason.substr(0, 20), "0 % against 20 %, 0.") << holds.reason;
  const Expectation more = assertion("more", {{of("fix", Metric::gpu_idle)}}, Relation::greater,
                                     {{of("baseline", Metric::gpu_idle)}});
  EXPECT_EQ(decided(more, traced_by_script()).outcome, Outcome::fails);
}

TEST(TracedAssertion, PassesAtItsLimitUnlessThatIsExcluded) {
  const auto outcome = [](Relation relation) {
    return decided(share("fix", Metric::gpu_idle, relation, 0), traced_by_script()).outcome;
  };
  EXPECT_EQ(outcome(Relation::at_most), Outcome::passes);
  EXPECT_EQ(outcome(Relation::less), Outcome::fails);
}

TEST(TracedAssertion, NeedsMoreThanAFewRounds) {
  const Traced few = traced_rounds(traced_by_script().rounds.front().variants, 3);
  const AssertionVerdict verdict =
      decided(share("fix", Metric::gpu_idle, Relation::at_most, 0.05), few);
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_NE(verdict.reason.find("3 traced rounds cannot decide it, 5 are the fewest that can"),
            std::string::npos)
      << verdict.reason;
  const Scenario traced = scenario_of({share("fix", Metric::gpu_idle, Relation::at_most, 0.05)});
  EXPECT_EQ(fewest_traced_rounds(traced, {}), 5);
  const Scenario compared =
      scenario_of({fix_against_baseline(Metric::gpu_idle, Relation::at_most, 1)});
  EXPECT_EQ(fewest_traced_rounds(compared, {}), 7);
  EXPECT_EQ(fewest_rounds_to_hold(traced, {}), 1) << "nothing is timed";
  EXPECT_EQ(fewest_traced_rounds(scenario_of({no_waits()}), {}), 2);
}

TEST(TracedAssertion, IsNoLongerOpenOnceItsRoundsDecideIt) {
  const Scenario scenario =
      scenario_of({share("fix", Metric::gpu_idle, Relation::at_most, 0.05), no_waits()});
  const std::vector<Subject> subjects = counted_by_script();
  const auto decide = [&](std::int64_t rounds) {
    const Traced traced = traced_rounds(traced_by_script().rounds.front().variants, rounds);
    return traced_rounds_decide(scenario, subjects, traced, {});
  };
  EXPECT_FALSE(decide(3));
  EXPECT_TRUE(decide(fewest_traced_rounds_to_hold(scenario, {})));
}

TEST(TracedAssertion, SaysWhatIsAbsent) {
  const AssertionVerdict verdict =
      decided(share("fix", Metric::copy_overlap, Relation::at_least, 0.8), traced_by_script());
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(verdict.reason,
            "'fix' copied nothing to the device in its traced steps, so it has no copy_overlap");
  EXPECT_EQ(decided(share("fix", Metric::gpu_idle, Relation::at_most, 0.8), std::nullopt).reason,
            "not traced (--no-trace)");
}

TEST(TracedAssertion, IsSkippedOutsideTheRegimeWhichATraceMayDecide) {
  const Expectation idle = share("fix", Metric::gpu_idle, Relation::at_most, 0.05);
  const auto regime = [](double limit) {
    return share("baseline", Metric::gpu_idle, Relation::at_least, limit);
  };
  EXPECT_EQ(decided(idle, traced_by_script(), {regime(0.5)}).outcome, Outcome::skipped);
  EXPECT_EQ(decided(idle, traced_by_script(), {regime(0.1)}).outcome, Outcome::passes);
  const Expectation waits = assertion("waits", {{of("baseline", Metric::host_waits_per_step)}},
                                      Relation::at_least, {{1.0}});
  EXPECT_EQ(decided(idle, traced_by_script(), {waits}).outcome, Outcome::passes);
  EXPECT_EQ(decided(idle, std::nullopt, {waits}).outcome, Outcome::undecided);
}

TEST(TracedAssertion, GoesOnFromEarlierTracedRounds) {
  const Scenario scenario = scenario_of({share("fix", Metric::gpu_idle, Relation::at_most, 0.05)});
  const std::vector<Subject> subjects = counted_by_script();
  Script script;
  script.step_time = noisy(1, 1);
  const Traced few = traced_rounds(traced_by_script().rounds.front().variants, 4);
  const Judged first = measure_and_judge(scenario, script, 1, few);
  ASSERT_EQ(first.verdict.outcome, Outcome::undecided);
  JudgeSettings settings;
  settings.earlier = evidence_of_rounds(scenario, subjects, first.measurement, settings);
  EXPECT_EQ(most_rounds(settings.earlier), 4);
  EXPECT_FALSE(nothing_left_to_measure(scenario, subjects, settings));
  EXPECT_EQ(fewest_traced_rounds(scenario, settings), 2);
  const Verdict second = judge(scenario, subjects, first.measurement, settings);
  EXPECT_EQ(second.outcome, Outcome::passes);
  EXPECT_EQ(second.assertions.front().not_randomised->earlier_rounds, 4);
}

// A share that is at its limit on average, with noise between rounds, stays undecided. A comparison
// at its limit fails no more often than its error rate.
TEST(TracedAssertion, FailsAtItsLimitNoMoreOftenThanStated) {
  constexpr std::uint64_t seeds = 300;
  int levels_decided = 0;
  int failed = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    Traced traced = traced_rounds(traced_by_script().rounds.front().variants, 20);
    for (const int variant : {0, 1}) {
      std::vector<double> values;
      for (int round = 0; round < 20; ++round)
        values.push_back(0.05 * std::exp(0.1 * random.normal()));
      set_values(traced, variant, Metric::gpu_idle, values);
    }
    levels_decided +=
        decided(share("fix", Metric::gpu_idle, Relation::at_most, 0.05), traced).outcome !=
        Outcome::undecided;
    failed +=
        decided(fix_against_baseline(Metric::gpu_idle, Relation::at_most, 1), traced).outcome ==
        Outcome::fails;
  }
  // Three rounds of 20 or fewer lie on one side with probability 1/390. More than 5 of 300 have a
  // probability below 1 in 1000.
  EXPECT_LE(levels_decided, 5);
  // The expected number is 1 % of 300, which is 3. More than 9 have a probability below 1 in 1000.
  EXPECT_LE(failed, 9);
}

// Returns traced rounds with a share for each rank of each variant, which scatters around a median.
Traced traced_of_ranks(const std::vector<std::vector<double>>& medians, std::int64_t rounds,
                       std::uint64_t seed, double noise) {
  Random random(seed);
  Traced traced =
      traced_rounds(traced_by_script().rounds.front().variants, static_cast<std::size_t>(rounds));
  for (TracedRound& round : traced.rounds) {
    round.ranks.resize(round.variants.size());
    for (std::size_t variant = 0; variant < medians.size(); ++variant) {
      for (const double median : medians[variant]) {
        TracedStep step = round.variants[variant];
        step.rank = static_cast<int>(round.ranks[variant].size());
        step.values[Metric::gpu_idle] = median * std::exp(noise * random.normal());
        round.ranks[variant].push_back(std::move(step));
      }
    }
  }
  take_worst_ranks(traced);
  return traced;
}

TEST(TracedAssertion, NamesTheRanksThatItIsAbout) {
  const Expectation compared = fix_against_baseline(Metric::gpu_idle, Relation::at_most, 1);
  const auto reason = [&](const std::vector<std::vector<double>>& medians) {
    return decided(compared, traced_of_ranks(medians, 7, 1, 0)).reason;
  };
  const std::string both = reason({{0.2, 0.3, 0.25}, {0.1, 0.11, 0.15}});
  EXPECT_NE(both.find("15 % against 30 %"), std::string::npos) << both;
  EXPECT_NE(both.find("; fix.gpu_idle is rank 2's, baseline.gpu_idle is rank 1's"),
            std::string::npos)
      << both;
  EXPECT_EQ(reason({{0.2, 0.2}, {0.1, 0.1}}).find("rank"), std::string::npos)
      << "where they are alike none is to blame";
  EXPECT_EQ(reason({{0.2}, {0.1}}).find("rank"), std::string::npos);
}

// The left side has four equal ranks and the right side has one. Which rank is worst is noise, and
// choosing the worst biases the ratio against the assertion.
TEST(TracedAssertion, OfRanksThatAreAlikeFailsAtItsLimitNoMoreOftenThanOneOfSoManyAssertions) {
  constexpr int seeds = 300;
  constexpr int ranks = 4;
  int failed = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Traced traced =
        traced_of_ranks({{0.05}, std::vector<double>(ranks, 0.05)}, 20, seed, 0.1);
    failed +=
        decided(fix_against_baseline(Metric::gpu_idle, Relation::at_most, 1), traced).outcome ==
        Outcome::fails;
  }
  std::cout << "four ranks alike at the limit: failed " << failed << " of " << seeds << '\n';
  // The expected number is 4 % of 300, which is 12. More than 24 have a probability below 1 in
  // 1000.
  EXPECT_LE(failed, 24);
}

AssertionVerdict level_of(const std::vector<double>& values, double limit) {
  Traced traced = traced_rounds(traced_by_script().rounds.front().variants, std::ssize(values));
  set_values(traced, 1, Metric::gpu_idle, values);
  return decided(share("fix", Metric::gpu_idle, Relation::at_most, limit), traced);
}

TEST(NotRandomised, PassesWhereEveryRoundIsInsideAndFailsWhereEveryRoundIsOutside) {
  const std::vector<double> values{0.041, 0.043, 0.040, 0.042, 0.044};
  EXPECT_EQ(level_of(values, 0.05).outcome, Outcome::passes);
  EXPECT_EQ(level_of(values, 0.03).outcome, Outcome::fails);
  EXPECT_EQ(level_of(values, 0.042).outcome, Outcome::undecided);
}

// With one outlier, four more rounds are needed to decide. Of twelve rounds, two may be outliers.
TEST(NotRandomised, IsDecidedByNearlyAllOfItsRounds) {
  const auto of = [](std::size_t inside, std::size_t outside) {
    std::vector<double> values(inside, 0.04);
    values.insert(values.begin() + 1, outside, 0.4);
    return level_of(values, 0.05);
  };
  EXPECT_EQ(of(4, 1).outcome, Outcome::undecided);
  EXPECT_EQ(of(7, 1).outcome, Outcome::undecided);
  const AssertionVerdict nine = of(8, 1);
  EXPECT_EQ(nine.outcome, Outcome::passes);
  EXPECT_TRUE(nine.reason.ends_with("; the limit is 5 %; 1 round lies on its other side"))
      << nine.reason;
  EXPECT_EQ(of(9, 2).outcome, Outcome::undecided);
  EXPECT_EQ(of(10, 2).outcome, Outcome::passes);
  EXPECT_EQ(of(10, 3).outcome, Outcome::undecided);
  EXPECT_EQ(of(1, 8).outcome, Outcome::fails);
  EXPECT_EQ(of(2, 7).outcome, Outcome::undecided);
}

TEST(NotRandomised, MakesMoreRoundsOnlyWhereTheyCanDecideIt) {
  const Expectation assertion = share("fix", Metric::gpu_idle, Relation::at_most, 0.05);
  const auto is_open = [&](const std::vector<double>& values) {
    Traced traced = traced_rounds(traced_by_script().rounds.front().variants, std::ssize(values));
    set_values(traced, 1, Metric::gpu_idle, values);
    return !traced_rounds_decide(scenario_of({assertion}), counted_by_script(), traced, {});
  };
  EXPECT_TRUE(is_open({0.04, 0.04, 0.04, 0.04}));
  EXPECT_FALSE(is_open({0.04, 0.04, 0.04, 0.04, 0.04}));
  EXPECT_TRUE(is_open({0.04, 0.4, 0.04, 0.04, 0.04}));
  EXPECT_FALSE(is_open({0.04, 0.4, 0.04, 0.04, 0.04, 0.04, 0.04, 0.04, 0.04}));
  EXPECT_TRUE(is_open({0.04, 0.4, 0.4, 0.04, 0.04, 0.04}));
  EXPECT_FALSE(is_open({0.04, 0.4, 0.4, 0.04, 0.4, 0.04})) << "three of 13 are too many";
}

TEST(NotRandomised, SaysItsRangeAndNoErrorRate) {
  const AssertionVerdict verdict = level_of({0.041, 0.043, 0.040, 0.042, 0.044}, 0.05);
  EXPECT_FALSE(verdict.timed);
  EXPECT_EQ(verdict.reason,
            "4.2 %, 4 % to 4.4 % in 5 traced rounds, an estimate without an error rate; the limit "
            "is 5 %");
  const AssertionVerdict between = level_of({0.041, 0.043, 0.040, 0.042, 0.044}, 0.042);
  EXPECT_NE(between.reason.find("its rounds lie on both sides of the limit"), std::string::npos)
      << between.reason;
}

TEST(NotRandomised, OfATimeBesideALimitOfNothingSaysNothingForTheLimit) {
  Script script;
  script.step_time = noisy(1, 1);
  const auto judged = [&](Relation relation) {
    return measure_and_judge(scenario_of({share("fix", Metric::step_ms_mean, relation, 0)}), script,
                             1, std::nullopt)
        .verdict.assertions.front();
  };
  const AssertionVerdict holds = judged(Relation::at_least);
  EXPECT_EQ(holds.outcome, Outcome::passes);
  EXPECT_TRUE(holds.reason.ends_with("; the limit is 0 s")) << holds.reason;
  EXPECT_EQ(holds.right, 0);
  EXPECT_EQ(holds.estimate->limit, 0);
  EXPECT_NEAR(*holds.left, holds.estimate->value, 1e-9);
  EXPECT_EQ(holds.reason.find(in_words(*holds.left, MetricUnit::seconds) + ", "), 0u)
      << holds.reason;
  const AssertionVerdict failed = judged(Relation::at_most);
  EXPECT_EQ(failed.outcome, Outcome::fails);
  EXPECT_TRUE(failed.reason.ends_with("; the limit is 0 s")) << failed.reason;
}

// Judges steps of 1 ms that need 494.7e9 FLOPs, on a GPU with a tf32 peak of 494.7e12 FLOP/s.
AssertionVerdict verdict_on_rate(Metric metric, const std::string& gpu, double limit,
                                 int ranks = 1) {
  std::vector<Subject> subjects = subjects_named({"baseline", "fix"});
  for (Subject& subject : subjects) {
    subject.batch_size = 64 * ranks;
    subject.tokens = 64 * ranks * 128;
    subject.dtype = DType::tf32;
    subject.ranks = ranks;
    subject.model_flops = 494.7e9 / 2;
  }
  const Scenario scenario =
      scenario_of({assertion("rate", {{of("fix", metric)}}, Relation::at_least, {{limit}})});
  Measurement measurement;
  measurement.device.name = gpu;
  for (int round = 0; round < 7; ++round) {
    measurement.rounds.emplace_back();
    for (const int variant : {0, 1}) {
      measurement.rounds.back().segments.push_back({.variant = variant,
                                                    .slot = variant,
                                                    .steps = 10,
                                                    .elapsed = std::chrono::milliseconds(10)});
    }
  }
  measurement.variants = {{.name = "baseline"}, {.name = "fix"}};
  return judge(scenario, subjects, measurement, {}).assertions.front();
}

TEST(Rates, CountTheTokensOfEverySample) {
  const AssertionVerdict verdict =
      verdict_on_rate(Metric::tokens_per_s, "a device", 64 * 128 / 1e-3);
  EXPECT_EQ(verdict.outcome, Outcome::passes) << verdict.reason;
  EXPECT_NEAR(verdict.left.value(), 64 * 128 / 1e-3, 1);
  EXPECT_EQ(verdict_on_rate(Metric::tokens_per_s, "a device", 65 * 128 / 1e-3).outcome,
            Outcome::fails);
}

TEST(Rates, AreOfAllRanksOrOfEachOne) {
  const AssertionVerdict all = verdict_on_rate(Metric::samples_per_s, "a device", 4 * 64 / 1e-3, 4);
  EXPECT_EQ(all.outcome, Outcome::passes) << all.reason;
  EXPECT_NEAR(all.left.value(), 4 * 64 / 1e-3, 1);
  const AssertionVerdict each =
      verdict_on_rate(Metric::samples_per_s_per_rank, "a device", 64 / 1e-3, 4);
  EXPECT_EQ(each.outcome, Outcome::passes) << each.reason;
  EXPECT_NEAR(each.left.value(), 64 / 1e-3, 1);
  EXPECT_EQ(verdict_on_rate(Metric::samples_per_s_per_rank, "a device", 65 / 1e-3, 4).outcome,
            Outcome::fails);
}

TEST(Rates, MfuIsTheShareOfTheDataSheetsPeak) {
  const AssertionVerdict verdict = verdict_on_rate(Metric::mfu, "NVIDIA H200", 0.49);
  EXPECT_EQ(verdict.outcome, Outcome::passes) << verdict.reason;
  EXPECT_NEAR(verdict.left.value(), 0.5, 1e-9);
  EXPECT_EQ(verdict_on_rate(Metric::mfu, "NVIDIA H200", 0.51).outcome, Outcome::fails);
}

TEST(Rates, MfuIsNotDecidedWhereThePeakIsNotKnown) {
  const AssertionVerdict verdict = verdict_on_rate(Metric::mfu, "a device", 0.01);
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(
      verdict.reason,
      "no data sheet's peak rate for the dtype of 'fix' is known of this device, so it has no "
      "mfu");
}

// All kernels but one have the same time per launch in every round.
TEST(KernelTime, IsComparedBetweenVariantsByTheKernelThatTheAssertionNames) {
  TracedStep slow = traced_step({.math = 100});
  TracedStep fast = traced_step({.math = 100});
  slow.work = {{"layer_norm", {.times = 4, .seconds = 40e-6}},
               {"matmul", {.times = 9, .seconds = 1e-3}}};
  fast.work = {{"layer_norm", {.times = 4, .seconds = 10e-6}},
               {"matmul", {.times = 9, .seconds = 1e-3}}};
  const auto outcome_of = [&](const std::string& kernel) {
    const auto metric = [&](const char* variant) -> Factor {
      return MetricOf{.variant = variant, .metric = Metric::kernel_us, .kernel = kernel};
    };
    Measurement measurement;
    measurement.traced = traced_rounds({slow, fast}, 12);
    measurement.traced->timelines.resize(2);
    return judge(scenario_of({assertion("kernel", {{metric("fix")}}, Relation::at_most,
                                        {{0.5, metric("baseline")}})}),
                 counted_by_script(), measurement, {})
        .assertions.front();
  };
  EXPECT_EQ(outcome_of("layer_norm").outcome, Outcome::passes) << outcome_of("layer_norm").reason;
  EXPECT_EQ(outcome_of("matmul").outcome, Outcome::fails) << outcome_of("matmul").reason;
  EXPECT_EQ(outcome_of("sgd").reason, "the traced steps of 'fix' do not tell its kernel_us(sgd)");
}

}  // namespace
}  // namespace stepgate
