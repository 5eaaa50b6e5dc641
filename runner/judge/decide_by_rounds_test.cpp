// SPDX-License-Identifier: MIT
// Sentences that traced rounds decide: counts, which must be the same in every round, and shares.
#include "judge/decide_by_rounds.h"

#include <gtest/gtest.h>

#include <iostream>

#include "judge/testing/fake_scenario.h"
#include "judge/testing/stored_runs_by_hand.h"
#include "judge/verdict/words.h"
#include "measure/trace/worst_ranks.h"
#include "support/random.h"

namespace stepgate {
namespace {

Expectation no_waits() {
  return sentence("no_waits", {{of("fix", Metric::host_waits_per_step)}}, Relation::equal, {{0.0}});
}

Expectation share(const std::string& variant, Metric metric, Relation relation, double limit) {
  return sentence("share", {{of(variant, metric)}}, relation, {{limit}});
}

SentenceVerdict decided(const Expectation& expectation, std::optional<Traced> traced,
                        std::vector<Expectation> regime = {}) {
  Script script;
  script.step_time = noisy(1, 1);
  return measure_and_judge(scenario_of({expectation}, std::move(regime)), script, 1,
                           std::move(traced))
      .verdict.sentences.front();
}

TEST(ExactSentence, IsDecidedByWhatTheTraceCountedNotByThePlan) {
  Traced traced = traced_by_script();
  EXPECT_EQ(decided(no_waits(), traced).outcome, Outcome::holds);
  set_values(traced, 1, Metric::host_waits_per_step, {2});
  const SentenceVerdict refuted = decided(no_waits(), traced);
  EXPECT_EQ(refuted.outcome, Outcome::refuted);
  EXPECT_EQ(refuted.reason, "2; it must be 0");
}

TEST(ExactSentence, IsUndecidedWhenTheCountChangesFromRoundToRound) {
  Traced traced = traced_by_script();
  set_values(traced, 1, Metric::host_waits_per_step, {0, 0, 0.05});
  const SentenceVerdict verdict = decided(no_waits(), traced);
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(verdict.reason,
            "fix.host_waits_per_step is 0 in the first traced round and 0.05 in round 3: no count "
            "to rely on");
}

TEST(ExactSentence, IsUndecidedWithoutATraceAndSaysWhatThePlanSays) {
  Traced refused;
  refused.unavailable = "another tool traces this process";
  const Expectation bad =
      sentence("bad", {{of("baseline", Metric::host_waits_per_step)}}, Relation::equal, {{0.0}});
  const SentenceVerdict unavailable = decided(bad, refused);
  EXPECT_EQ(unavailable.outcome, Outcome::undecided);
  EXPECT_EQ(unavailable.reason,
            "trace unavailable: another tool traces this process; the plan says 1; it must be 0");
  const SentenceVerdict not_traced = decided(bad, std::nullopt);
  EXPECT_EQ(not_traced.outcome, Outcome::undecided);
  EXPECT_EQ(not_traced.reason, "not traced (--no-trace); the plan says 1; it must be 0");
}

TEST(ExactSentence, IsUndecidedWhenTheTraceDoesNotTell) {
  const Expectation polls =
      sentence("polls", {{of("fix", Metric::polls_per_step)}}, Relation::equal, {{0.0}});
  const SentenceVerdict verdict = decided(polls, traced_by_script());
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(verdict.reason, "the traced steps of 'fix' do not tell its polls_per_step");
}

TEST(ExactSentence, LeavesTimedOnesAndPlansAloneWhenThereIsNoTrace) {
  Script script;
  script.step_time = noisy(1 / 1.3, 1);
  Traced refused;
  refused.unavailable = "no permission";
  const Scenario scenario =
      scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05),
                   sentence("memory", {{of("fix", Metric::peak_live)}}, Relation::less,
                            {{of("baseline", Metric::peak_live)}})});
  EXPECT_EQ(measure_and_judge(scenario, script, 1, refused).verdict.outcome, Outcome::holds);
}

TEST(TracedSentence, HoldsForAShareOfNothing) {
  const SentenceVerdict verdict =
      decided(share("fix", Metric::gpu_idle, Relation::at_most, 0.05), traced_by_script());
  EXPECT_EQ(verdict.outcome, Outcome::holds);
  EXPECT_EQ(verdict.reason.substr(0, 5), "0 %, ") << verdict.reason;
  EXPECT_NE(verdict.reason.find(
                "in 7 traced rounds, an estimate without an error rate; the limit is 5 %"),
            std::string::npos)
      << verdict.reason;
}

TEST(TracedSentence, TellsTheValueBesideALimitOfNothing) {
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
      << "what is refuted as well";
  EXPECT_EQ(reason("fix", Relation::at_most).find("0 %, 0 % to 0 % "), 0u)
      << reason("fix", Relation::at_most);
}

TEST(TracedSentence, IsRefutedByAShareBeyondTheLimit) {
  EXPECT_EQ(
      decided(share("baseline", Metric::gpu_idle, Relation::at_most, 0.05), traced_by_script())
          .outcome,
      Outcome::refuted);
}

TEST(TracedSentence, HoldsForAShareOfEverything) {
  Traced traced = traced_by_script();
  set_values(traced, 1, Metric::copy_overlap, {1});
  const SentenceVerdict verdict =
      decided(share("fix", Metric::copy_overlap, Relation::at_least, 0.8), traced);
  EXPECT_EQ(verdict.outcome, Outcome::holds);
  EXPECT_EQ(verdict.reason.substr(0, 7), "100 %, ") << verdict.reason;
}

TEST(TracedSentence, ComparesTwoVariantsEvenWhereOneHasNothing) {
  const Expectation less = sentence("less", {{of("fix", Metric::gpu_idle)}}, Relation::less,
                                    {{of("baseline", Metric::gpu_idle)}});
  const SentenceVerdict holds = decided(less, traced_by_script());
  EXPECT_EQ(holds.outcome, Outcome::holds);
  EXPECT_EQ(holds.reason.substr(0, 20), "0 % against 20 %, 0.") << holds.reason;
  const Expectation more = sentence("more", {{of("fix", Metric::gpu_idle)}}, Relation::greater,
                                    {{of("baseline", Metric::gpu_idle)}});
  EXPECT_EQ(decided(more, traced_by_script()).outcome, Outcome::refuted);
}

TEST(TracedSentence, HoldsAtItsLimitUnlessThatIsExcluded) {
  const auto outcome = [](Relation relation) {
    return decided(share("fix", Metric::gpu_idle, relation, 0), traced_by_script()).outcome;
  };
  EXPECT_EQ(outcome(Relation::at_most), Outcome::holds);
  EXPECT_EQ(outcome(Relation::less), Outcome::refuted);
}

TEST(TracedSentence, NeedsMoreThanAFewRounds) {
  const Traced few = traced_rounds(traced_by_script().rounds.front().variants, 3);
  const SentenceVerdict verdict =
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

TEST(TracedSentence, IsNoLongerOpenOnceItsRoundsDecideIt) {
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

TEST(TracedSentence, SaysWhatIsAbsent) {
  const SentenceVerdict verdict =
      decided(share("fix", Metric::copy_overlap, Relation::at_least, 0.8), traced_by_script());
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(verdict.reason,
            "'fix' copied nothing to the device in its traced steps, so it has no copy_overlap");
  EXPECT_EQ(decided(share("fix", Metric::gpu_idle, Relation::at_most, 0.8), std::nullopt).reason,
            "not traced (--no-trace)");
}

TEST(TracedSentence, IsSkippedOutsideTheRegimeWhichATraceMayDecide) {
  const Expectation idle = share("fix", Metric::gpu_idle, Relation::at_most, 0.05);
  const auto regime = [](double limit) {
    return share("baseline", Metric::gpu_idle, Relation::at_least, limit);
  };
  EXPECT_EQ(decided(idle, traced_by_script(), {regime(0.5)}).outcome, Outcome::skipped);
  EXPECT_EQ(decided(idle, traced_by_script(), {regime(0.1)}).outcome, Outcome::holds);
  const Expectation waits = sentence("waits", {{of("baseline", Metric::host_waits_per_step)}},
                                     Relation::at_least, {{1.0}});
  EXPECT_EQ(decided(idle, traced_by_script(), {waits}).outcome, Outcome::holds);
  EXPECT_EQ(decided(idle, std::nullopt, {waits}).outcome, Outcome::undecided);
}

TEST(TracedSentence, GoesOnFromEarlierTracedRounds) {
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
  EXPECT_EQ(second.outcome, Outcome::holds);
  EXPECT_EQ(second.sentences.front().level->earlier_rounds, 4);
}

// A share that lies at its limit on average, with noise from round to round, stays undecided; a
// comparison at its limit keeps its rate.
TEST(TracedSentence, RefutesAtItsLimitNoMoreOftenThanStated) {
  constexpr std::uint64_t seeds = 300;
  int levels_decided = 0;
  int refuted = 0;
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
    refuted +=
        decided(fix_against_baseline(Metric::gpu_idle, Relation::at_most, 1), traced).outcome ==
        Outcome::refuted;
  }
  // By three rounds of 20 or fewer on one side, once in 390; more than 5 of 300 come with a
  // probability below 1 in 1000.
  EXPECT_LE(levels_decided, 5);
  // 1 % of 300 is 3; more than 9 come with a probability below 1 in 1000.
  EXPECT_LE(refuted, 9);
}

// --- several ranks
// -------------------------------------------------------------------------------

// A share of each variant's ranks around a median each, with noise from round to round.
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

TEST(TracedSentence, NamesTheRanksThatItIsAbout) {
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

// At its limit, where four ranks are alike on the left side and one is on the right one: which is
// worst is noise, and that the worst is chosen speaks against the sentence.
TEST(TracedSentence, OfRanksThatAreAlikeIsRefutedAtItsLimitNoMoreOftenThanOneOfSoManySentences) {
  constexpr int seeds = 300;
  constexpr int ranks = 4;
  int refuted = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Traced traced =
        traced_of_ranks({{0.05}, std::vector<double>(ranks, 0.05)}, 20, seed, 0.1);
    refuted +=
        decided(fix_against_baseline(Metric::gpu_idle, Relation::at_most, 1), traced).outcome ==
        Outcome::refuted;
  }
  std::cout << "four ranks alike at the limit: refuted " << refuted << " of " << seeds << '\n';
  // 4 % of 300 is 12; more than 24 come with a probability below 1 in 1000.
  EXPECT_LE(refuted, 24);
}

// --- levels --------------------------------------------------------------------------------------

SentenceVerdict level_of(const std::vector<double>& values, double limit) {
  Traced traced = traced_rounds(traced_by_script().rounds.front().variants, std::ssize(values));
  set_values(traced, 1, Metric::gpu_idle, values);
  return decided(share("fix", Metric::gpu_idle, Relation::at_most, limit), traced);
}

TEST(Level, HoldsWhereEveryRoundIsInsideAndIsRefutedWhereEveryRoundIsOutside) {
  const std::vector<double> values{0.041, 0.043, 0.040, 0.042, 0.044};
  EXPECT_EQ(level_of(values, 0.05).outcome, Outcome::holds);
  EXPECT_EQ(level_of(values, 0.03).outcome, Outcome::refuted);
  EXPECT_EQ(level_of(values, 0.042).outcome, Outcome::undecided);
}

// Something held up the host in one: four more decide, and of twelve two may be such.
TEST(Level, IsDecidedByNearlyAllOfItsRounds) {
  const auto of = [](std::size_t inside, std::size_t outside) {
    std::vector<double> values(inside, 0.04);
    values.insert(values.begin() + 1, outside, 0.4);
    return level_of(values, 0.05);
  };
  EXPECT_EQ(of(4, 1).outcome, Outcome::undecided);
  EXPECT_EQ(of(7, 1).outcome, Outcome::undecided);
  const SentenceVerdict nine = of(8, 1);
  EXPECT_EQ(nine.outcome, Outcome::holds);
  EXPECT_TRUE(nine.reason.ends_with("; the limit is 5 %; 1 round lies on its other side"))
      << nine.reason;
  EXPECT_EQ(of(9, 2).outcome, Outcome::undecided);
  EXPECT_EQ(of(10, 2).outcome, Outcome::holds);
  EXPECT_EQ(of(10, 3).outcome, Outcome::undecided);
  EXPECT_EQ(of(1, 8).outcome, Outcome::refuted);
  EXPECT_EQ(of(2, 7).outcome, Outcome::undecided);
}

TEST(Level, MakesMoreRoundsOnlyWhereTheyCanDecideIt) {
  const Expectation sentence = share("fix", Metric::gpu_idle, Relation::at_most, 0.05);
  const auto is_open = [&](const std::vector<double>& values) {
    Traced traced = traced_rounds(traced_by_script().rounds.front().variants, std::ssize(values));
    set_values(traced, 1, Metric::gpu_idle, values);
    return !traced_rounds_decide(scenario_of({sentence}), counted_by_script(), traced, {});
  };
  EXPECT_TRUE(is_open({0.04, 0.04, 0.04, 0.04}));
  EXPECT_FALSE(is_open({0.04, 0.04, 0.04, 0.04, 0.04}));
  EXPECT_TRUE(is_open({0.04, 0.4, 0.04, 0.04, 0.04}));
  EXPECT_FALSE(is_open({0.04, 0.4, 0.04, 0.04, 0.04, 0.04, 0.04, 0.04, 0.04}));
  EXPECT_TRUE(is_open({0.04, 0.4, 0.4, 0.04, 0.04, 0.04}));
  EXPECT_FALSE(is_open({0.04, 0.4, 0.4, 0.04, 0.4, 0.04})) << "three of 13 are too many";
}

TEST(Level, SaysItsRangeAndNoErrorRate) {
  const SentenceVerdict verdict = level_of({0.041, 0.043, 0.040, 0.042, 0.044}, 0.05);
  EXPECT_FALSE(verdict.timed);
  EXPECT_EQ(verdict.reason,
            "4.2 %, 4 % to 4.4 % in 5 traced rounds, an estimate without an error rate; the limit "
            "is 5 %");
  const SentenceVerdict between = level_of({0.041, 0.043, 0.040, 0.042, 0.044}, 0.042);
  EXPECT_NE(between.reason.find("its rounds lie on both sides of the limit"), std::string::npos)
      << between.reason;
}

TEST(Level, OfATimeBesideALimitOfNothingSaysNothingForTheLimit) {
  Script script;
  script.step_time = noisy(1, 1);
  const auto judged = [&](Relation relation) {
    return measure_and_judge(scenario_of({share("fix", Metric::step_ms_mean, relation, 0)}), script,
                             1, std::nullopt)
        .verdict.sentences.front();
  };
  const SentenceVerdict holds = judged(Relation::at_least);
  EXPECT_EQ(holds.outcome, Outcome::holds);
  EXPECT_TRUE(holds.reason.ends_with("; the limit is 0 s")) << holds.reason;
  EXPECT_EQ(holds.right, 0);
  EXPECT_EQ(holds.estimate->limit, 0);
  EXPECT_NEAR(*holds.left, holds.estimate->value, 1e-9);
  EXPECT_EQ(holds.reason.find(in_words(*holds.left, MetricUnit::seconds) + ", "), 0u)
      << holds.reason;
  const SentenceVerdict refuted = judged(Relation::at_most);
  EXPECT_EQ(refuted.outcome, Outcome::refuted);
  EXPECT_TRUE(refuted.reason.ends_with("; the limit is 0 s")) << refuted.reason;
}

// Steps of 1 ms that need 494.7e9 FLOPs, on a GPU whose peak for tf32 is 494.7e12 a second.
SentenceVerdict verdict_on_rate(Metric metric, const std::string& gpu, double limit,
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
      scenario_of({sentence("rate", {{of("fix", metric)}}, Relation::at_least, {{limit}})});
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
  return judge(scenario, subjects, measurement, {}).sentences.front();
}

TEST(Rates, CountTheTokensOfEverySample) {
  const SentenceVerdict verdict =
      verdict_on_rate(Metric::tokens_per_s, "a device", 64 * 128 / 1e-3);
  EXPECT_EQ(verdict.outcome, Outcome::holds) << verdict.reason;
  EXPECT_NEAR(verdict.left.value(), 64 * 128 / 1e-3, 1);
  EXPECT_EQ(verdict_on_rate(Metric::tokens_per_s, "a device", 65 * 128 / 1e-3).outcome,
            Outcome::refuted);
}

TEST(Rates, AreOfAllRanksOrOfEachOne) {
  const SentenceVerdict all = verdict_on_rate(Metric::samples_per_s, "a device", 4 * 64 / 1e-3, 4);
  EXPECT_EQ(all.outcome, Outcome::holds) << all.reason;
  EXPECT_NEAR(all.left.value(), 4 * 64 / 1e-3, 1);
  const SentenceVerdict each =
      verdict_on_rate(Metric::samples_per_s_per_rank, "a device", 64 / 1e-3, 4);
  EXPECT_EQ(each.outcome, Outcome::holds) << each.reason;
  EXPECT_NEAR(each.left.value(), 64 / 1e-3, 1);
  EXPECT_EQ(verdict_on_rate(Metric::samples_per_s_per_rank, "a device", 65 / 1e-3, 4).outcome,
            Outcome::refuted);
}

TEST(Rates, MfuIsTheShareOfTheDataSheetsPeak) {
  const SentenceVerdict verdict = verdict_on_rate(Metric::mfu, "NVIDIA H200", 0.49);
  EXPECT_EQ(verdict.outcome, Outcome::holds) << verdict.reason;
  EXPECT_NEAR(verdict.left.value(), 0.5, 1e-9);
  EXPECT_EQ(verdict_on_rate(Metric::mfu, "NVIDIA H200", 0.51).outcome, Outcome::refuted);
}

TEST(Rates, MfuIsNotDecidedWhereThePeakIsNotKnown) {
  const SentenceVerdict verdict = verdict_on_rate(Metric::mfu, "a device", 0.01);
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_EQ(
      verdict.reason,
      "no data sheet's peak rate for the dtype of 'fix' is known of this device, so it has no "
      "mfu");
}

// The same time per launch in every round but for one kernel.
TEST(KernelTime, IsComparedBetweenVariantsByTheKernelThatTheSentenceNames) {
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
    return judge(scenario_of({sentence("kernel", {{metric("fix")}}, Relation::at_most,
                                       {{0.5, metric("baseline")}})}),
                 counted_by_script(), measurement, {})
        .sentences.front();
  };
  EXPECT_EQ(outcome_of("layer_norm").outcome, Outcome::holds) << outcome_of("layer_norm").reason;
  EXPECT_EQ(outcome_of("matmul").outcome, Outcome::refuted) << outcome_of("matmul").reason;
  EXPECT_EQ(outcome_of("sgd").reason, "the traced steps of 'fix' do not tell its kernel_us(sgd)");
}

}  // namespace
}  // namespace stepgate
