// SPDX-License-Identifier: MIT
// Tests the contribution of an interleaved round to a comparison of step times: the trimmed means
// of its steps, unless total time contradicts them.
#include <gtest/gtest.h>

#include <cmath>

#include "judge/assertion_test.h"
#include "judge/assertions/estimate.h"
#include "judge/assertions/reasons.h"
#include "judge/testing/fake_scenario.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t steps = 40;
constexpr int rounds = 20;

// Returns steps of 100 us, of which `stalled` steps take three times as long.
Segment segment(int variant, std::chrono::nanoseconds step, std::size_t stalled) {
  Segment made{.variant = variant, .steps = steps, .step_times = {steps, step}};
  for (std::size_t at = 0; at < stalled; ++at) made.step_times[(7 * at) % steps] = 3 * step;
  for (const std::chrono::nanoseconds time : made.step_times) made.elapsed += time;
  return made;
}

AssertionVerdict decided(const Expectation& expectation, const Segment& baseline,
                         const Segment& fix, bool interleaved = true,
                         const EarlierRounds& earlier = {}, int own_rounds = rounds) {
  const std::vector<Subject> subjects = counted_by_script();
  const JudgeSettings settings;
  AssertionTest test(expectation, subjects, settings, earlier);
  const Round round{.segments = {baseline, fix}, .interleaved = interleaved};
  for (int done = 0; done < own_rounds; ++done) test.add({.subjects = subjects, .round = &round});
  AssertionVerdict verdict;
  test.describe(0.95, verdict);
  return verdict;
}

const Expectation trimmed_no_slower =
    fix_against_baseline(Metric::step_ms_mean, Relation::at_most, 1.005);

TEST(TrimmedMeans, LeaveOutWhatStallsAFewOfThem) {
  const AssertionVerdict verdict =
      decided(trimmed_no_slower, segment(0, 100us, 4), segment(1, 100us, 3));
  EXPECT_EQ(verdict.outcome, Outcome::passes);
  EXPECT_NEAR(verdict.timed->contrasts.back(), -std::log(1.005), 1e-12);
  EXPECT_LT(*verdict.timed->total_ratio, 0.97);
}

TEST(TrimmedMeans, HoldNothingThatTotalTimeSpeaksAgainst) {
  const AssertionVerdict verdict =
      decided(trimmed_no_slower, segment(0, 100us, 0), segment(1, 100us, 3));
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_TRUE(verdict.timed->held_back_by_total);
  EXPECT_NEAR(verdict.timed->contrasts.back(), -std::log(1.005), 1e-12);
  EXPECT_GT(*verdict.timed->total_ratio, 1.1);
}

TEST(TrimmedMeans, AreExplainedWhereTotalTimeSaysOtherwise) {
  const AssertionVerdict verdict =
      decided(trimmed_no_slower, segment(0, 100us, 0), segment(1, 100us, 3));
  AssertionVerdict explained = verdict;
  explained.estimate = estimate_of(trimmed_no_slower, verdict);
  Measurement measurement;
  measurement.rounds.resize(1);
  const std::string reason = reason_by_rounds(trimmed_no_slower, explained, measurement, 0.95, 6);
  EXPECT_NE(reason.find("typical and total time disagree, 1.000x and 1.15x, so it is not decided: "
                        "few of its steps took far longer than the others"),
            std::string::npos)
      << reason;
  measurement.segments_because = "the scenario asks for it";
  EXPECT_NE(reason_by_rounds(trimmed_no_slower, explained, measurement, 0.95, 6)
                .find("few of its rounds took far longer than the others"),
            std::string::npos);
}

// Returns 20 rounds of an earlier run, each of 40 steps of 100 us, with the given times of both
// sides.
EarlierRounds earlier_rounds(double contrast, double left_seconds, double right_seconds) {
  EarlierRounds earlier{.contrasts = {{"pays", std::vector<double>(20, contrast)}}};
  for (int round = 0; round < 20; ++round)
    earlier.times["pays"].insert(earlier.times["pays"].end(), {steps, left_seconds, right_seconds});
  return earlier;
}

// Total time sums over all runs, so that stalls of an earlier run still count.
TEST(TrimmedMeans, OfEarlierRunsCountWithTheirTotalTime) {
  const Segment plain = segment(0, 100us, 0);
  const Segment same = segment(1, 100us, 0);
  const double limit = -std::log(1.005);
  const auto outcome_of = [&](const EarlierRounds& earlier, int own_rounds) {
    return decided(trimmed_no_slower, plain, same, true, earlier, own_rounds).outcome;
  };
  EXPECT_EQ(outcome_of(earlier_rounds(limit, 4e-3, 4e-3), 0), Outcome::passes);
  const EarlierRounds stalled = earlier_rounds(limit, 4.6e-3, 4e-3);
  EXPECT_EQ(outcome_of(stalled, 0), Outcome::undecided);
  EXPECT_EQ(outcome_of(stalled, 20), Outcome::undecided) << "7 % slower over both runs";
  EXPECT_EQ(outcome_of(stalled, 1000), Outcome::passes) << "0.3 % over both";
  EXPECT_EQ(outcome_of(earlier_rounds(0.01, 4.06e-3, 4e-3), 0), Outcome::fails);
  EXPECT_EQ(outcome_of(earlier_rounds(0.01, 4e-3, 4e-3), 0), Outcome::undecided);
}

// Earlier rounds with unknown times decide nothing by themselves.
TEST(TrimmedMeans, OfEarlierRunsWithoutTimesDecideNothingByThemselves) {
  const Segment plain = segment(0, 100us, 0);
  const Segment same = segment(1, 100us, 0);
  for (const double contrast : {-std::log(1.005), 0.01}) {
    const EarlierRounds earlier{.contrasts = {{"pays", std::vector<double>(20, contrast)}}};
    const AssertionVerdict before = decided(trimmed_no_slower, plain, same, true, earlier, 0);
    EXPECT_EQ(before.outcome, Outcome::undecided);
    EXPECT_FALSE(before.timed->held_back_by_total);
  }
}

// This fix stalls less often, but its typical step is slower; in total it is faster. Neither
// outcome would be right.
TEST(TrimmedMeans, RefuteNothingThatTotalTimeSpeaksFor) {
  const AssertionVerdict verdict =
      decided(trimmed_no_slower, segment(0, 100us, 3), segment(1, 101us, 0));
  EXPECT_EQ(verdict.outcome, Outcome::undecided);
  EXPECT_TRUE(verdict.timed->held_back_by_total);
  EXPECT_LT(*verdict.timed->total_ratio, 0.9);
}

TEST(TrimmedMeans, ShowWhatSlowsDownMoreThanATenth) {
  const Segment plain = segment(0, 100us, 0);
  EXPECT_EQ(decided(trimmed_no_slower, plain, segment(1, 101us, 0)).outcome, Outcome::fails);
  EXPECT_EQ(decided(trimmed_no_slower, plain, segment(1, 100us, 8)).outcome, Outcome::fails);
}

// Long segments share few rare steps, and levels and percentiles have no total time as a safeguard.
TEST(TrimmedMeans, AreNotWhatAnythingElseIsAbout) {
  const Segment plain = segment(0, 100us, 0);
  const Segment stalling = segment(1, 100us, 3);
  EXPECT_EQ(decided(trimmed_no_slower, plain, stalling, false).outcome, Outcome::fails);
  EXPECT_EQ(decided(assertion("level", {{of("fix", Metric::step_ms_mean)}}, Relation::at_most,
                              {{110e-6}}),
                    plain, stalling)
                .outcome,
            Outcome::fails);
  EXPECT_EQ(
      decided(fix_against_baseline(Metric::step_ms_p99, Relation::at_most, 1.005), plain, stalling)
          .outcome,
      Outcome::fails);
}

}  // namespace
}  // namespace stepgate
