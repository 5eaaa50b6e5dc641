// SPDX-License-Identifier: MIT
// What a round of interleaved steps contributes to a comparison of step times: the middle of its
// steps, as long as total time does not say otherwise.
#include <gtest/gtest.h>

#include <cmath>

#include "judge/sentence_test.h"
#include "judge/sentences/estimate.h"
#include "judge/sentences/reasons.h"
#include "judge/testing/fake_scenario.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t steps = 40;
constexpr int rounds = 20;

// Steps of 100 us, `stalled` of them three times as long.
Segment segment(int variant, std::chrono::nanoseconds step, std::size_t stalled) {
  Segment made{.variant = variant, .steps = steps, .step_times = {steps, step}};
  for (std::size_t at = 0; at < stalled; ++at) made.step_times[(7 * at) % steps] = 3 * step;
  for (const std::chrono::nanoseconds time : made.step_times) made.elapsed += time;
  return made;
}

SentenceVerdict decided(const Expectation& expectation, const Segment& baseline, const Segment& fix,
                        bool interleaved = true, const Contrasts& earlier = {},
                        int own_rounds = rounds) {
  const std::vector<PlannedStep> plans = counted_by_script();
  const JudgeSettings settings;
  SentenceTest test(expectation, plans, settings, earlier);
  const Round round{.segments = {baseline, fix}, .interleaved = interleaved};
  for (int done = 0; done < own_rounds; ++done) test.add({.plans = plans, .round = &round});
  SentenceVerdict verdict;
  test.describe(0.95, verdict);
  return verdict;
}

const Expectation trimmed_no_slower =
    fix_against_baseline(Metric::step_ms_mean, Relation::at_most, 1.005);

TEST(TrimmedMeans, LeaveOutWhatStallsAFewOfThem) {
  const SentenceVerdict verdict =
      decided(trimmed_no_slower, segment(0, 100us, 4), segment(1, 100us, 3));
  EXPECT_EQ(verdict.outcome, Outcome::holds);
  EXPECT_NEAR(verdict.timed->contrasts.back(), -std::log(1.005), 1e-12);
  EXPECT_LT(*verdict.timed->total_ratio, 0.97);
}

TEST(TrimmedMeans, HoldNothingThatTotalTimeSpeaksAgainst) {
  const SentenceVerdict verdict =
      decided(trimmed_no_slower, segment(0, 100us, 0), segment(1, 100us, 3));
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_TRUE(verdict.timed->held_back_by_total);
  EXPECT_NEAR(verdict.timed->contrasts.back(), -std::log(1.005), 1e-12);
  EXPECT_GT(*verdict.timed->total_ratio, 1.1);
}

TEST(TrimmedMeans, AreExplainedWhereTotalTimeSaysOtherwise) {
  const SentenceVerdict verdict =
      decided(trimmed_no_slower, segment(0, 100us, 0), segment(1, 100us, 3));
  SentenceVerdict explained = verdict;
  explained.estimate = estimate_of(trimmed_no_slower, verdict);
  Measurement measurement;
  measurement.rounds.resize(1);
  EXPECT_NE(reason_by_rounds(trimmed_no_slower, explained, measurement, 0.95, 6)
                .find("few of its steps took far longer than the others"),
            std::string::npos);
  measurement.segments_because = "the scenario asks for it";
  EXPECT_NE(reason_by_rounds(trimmed_no_slower, explained, measurement, 0.95, 6)
                .find("few of its rounds took far longer than the others"),
            std::string::npos);
}

// An earlier run leaves contrasts and no total time. What they make hold waits for rounds that know
// theirs; what they refute stays refuted.
TEST(TrimmedMeans, OfAnEarlierRunHoldNothingByThemselves) {
  const Segment plain = segment(0, 100us, 0);
  const Segment same = segment(1, 100us, 0);
  const Contrasts fast{{"pays", std::vector<double>(20, -std::log(1.005))}};
  const SentenceVerdict before = decided(trimmed_no_slower, plain, same, true, fast, 0);
  EXPECT_EQ(before.outcome, Outcome::undecided);
  EXPECT_FALSE(before.timed->held_back_by_total);
  EXPECT_EQ(decided(trimmed_no_slower, plain, same, true, fast, 1).outcome, Outcome::holds);
  EXPECT_EQ(decided(trimmed_no_slower, plain, segment(1, 100us, 3), true, fast, 20).outcome,
            Outcome::undecided);
  const Contrasts slow{{"pays", std::vector<double>(20, 0.01)}};
  EXPECT_EQ(decided(trimmed_no_slower, plain, same, true, slow, 0).outcome, Outcome::refuted);
}

// Total time guards what holds alone: a fix that stalls less often and whose typical step is slower
// is refuted.
TEST(TrimmedMeans, RefuteWhateverTotalTimeSays) {
  const SentenceVerdict verdict =
      decided(trimmed_no_slower, segment(0, 100us, 3), segment(1, 101us, 0));
  EXPECT_EQ(verdict.outcome, Outcome::refuted);
  EXPECT_LT(*verdict.timed->total_ratio, 0.9);
}

TEST(TrimmedMeans, ShowWhatSlowsDownMoreThanATenth) {
  const Segment plain = segment(0, 100us, 0);
  EXPECT_EQ(decided(trimmed_no_slower, plain, segment(1, 101us, 0)).outcome, Outcome::refuted);
  EXPECT_EQ(decided(trimmed_no_slower, plain, segment(1, 100us, 8)).outcome, Outcome::refuted);
}

// Long segments have few rare steps in common, and levels and percentiles have no total to guard
// them.
TEST(TrimmedMeans, AreNotWhatAnythingElseIsAbout) {
  const Segment plain = segment(0, 100us, 0);
  const Segment stalling = segment(1, 100us, 3);
  EXPECT_EQ(decided(trimmed_no_slower, plain, stalling, false).outcome, Outcome::refuted);
  EXPECT_EQ(
      decided(sentence("level", {{of("fix", Metric::step_ms_mean)}}, Relation::at_most, {{110e-6}}),
              plain, stalling)
          .outcome,
      Outcome::refuted);
  EXPECT_EQ(
      decided(fix_against_baseline(Metric::step_ms_p99, Relation::at_most, 1.005), plain, stalling)
          .outcome,
      Outcome::refuted);
}

}  // namespace
}  // namespace stepgate
