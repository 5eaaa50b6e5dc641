// SPDX-License-Identifier: MIT
// Tests the number of steps in a segment and in its wash-out.
#include "measure/schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "measure/testing/fake_device.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

Subject with_periods(const std::vector<std::int64_t>& periods) {
  Subject subject{.name = "a"};
  for (const std::int64_t every : periods)
    subject.periodic.push_back({.name = "work", .every = every});
  return subject;
}

std::int64_t steps_of(const Subject& subject, const MeasureKnobs& knobs, nanoseconds time) {
  return segment_steps(std::span(&subject, 1), knobs, std::span(&time, 1));
}

TEST(Schedule, ScoresFiveMillisecondsWithinItsLimits) {
  const Subject subject = with_periods({});
  const MeasureKnobs knobs;
  const auto steps = [&](nanoseconds time) { return steps_of(subject, knobs, time); };
  EXPECT_EQ(steps(50us), 50) << "the knob is the most";
  EXPECT_EQ(steps(200us), 26);
  EXPECT_EQ(steps(5ms), 2);
  EXPECT_EQ(steps(1s), 1);
}

TEST(Schedule, GivesEverySegmentWholePeriodsOfRareOperations) {
  const MeasureKnobs knobs;
  EXPECT_EQ(steps_of(with_periods({8}), knobs, 1ms), 8);
  EXPECT_EQ(steps_of(with_periods({8, 12}), knobs, 1ms), 24);
}

TEST(Schedule, GoesBeyondItsKnobForWholePeriodsUpToATenthOfASecond) {
  const Subject subject = with_periods({300});
  const MeasureKnobs knobs{.max_seconds = 2};
  EXPECT_EQ(steps_of(subject, knobs, 300us), 300);
  EXPECT_EQ(steps_of(subject, knobs, 400us), 13) << "120 ms are too long";
  EXPECT_EQ(steps_of(subject, {.steps = 300, .max_seconds = 2}, 400us), 300)
      << "but not where the scenario asks for them";
}

// 30 seconds hold twelve rounds with two segments of 0.625 s of each of two variants.
TEST(Schedule, GoesOnForWholePeriodsWhereTheBudgetStillAllowsTwelveRounds) {
  const auto steps = [](std::size_t variants, std::int64_t every, nanoseconds time) {
    const std::vector<Subject> subjects(variants, with_periods({every}));
    return segment_steps(subjects, {}, std::vector<nanoseconds>(variants, time));
  };
  EXPECT_EQ(steps(2, 500, 1200us), 500);
  EXPECT_EQ(steps(2, 500, 1300us), 4);
  EXPECT_EQ(steps(3, 500, 1200us), 5) << "more variants take more time";
  EXPECT_EQ(steps(2, 1, 1200us), 5) << "without a reason never";
}

// Segments of different lengths are biased against each other where a few steps take far longer.
TEST(Schedule, ScoresAsManyStepsOfEveryVariant) {
  Subject deep = with_periods({});
  deep.loader_depth = 24;
  const std::vector<Subject> subjects{with_periods({4}), deep, with_periods({6})};
  const std::vector<nanoseconds> equal(3, 1ms);
  EXPECT_EQ(segment_steps(subjects, {}, equal), 12) << "5 ms, in periods of 4 and 6";
  const std::vector<Subject> plain(2, with_periods({}));
  EXPECT_EQ(segment_steps(plain, {}, std::vector<nanoseconds>{500us, 600us}), 11);
  EXPECT_EQ(segment_steps(plain, {}, std::vector<nanoseconds>{500us, 3ms}), 3);
  EXPECT_EQ(segment_steps(plain, {}, std::vector<nanoseconds>{2ms, 8ms}), 2);
}

TEST(Schedule, LeavesAPeriodOutThatNoSegmentCovers) {
  const std::vector<Subject> subjects{with_periods({8}), with_periods({100'000})};
  EXPECT_EQ(segment_steps(subjects, {}, std::vector<nanoseconds>(2, 1ms)), 8);
}

TEST(Schedule, ScoresWhatAPercentileNeedsInTwoSegments) {
  EXPECT_EQ(steps_of(with_periods({}), {.fewest_steps = 300}, 1ms), 150);
  EXPECT_EQ(steps_of(with_periods({}), {.fewest_steps = 300}, 20ms), 150);
  EXPECT_EQ(steps_of(with_periods({7}), {.fewest_steps = 300}, 1ms), 154);
}

TEST(Schedule, WashesOutMoreThanTheQueuePassesUnlessStepsAreLong) {
  Subject subject = with_periods({});
  subject.steps_in_flight = 9;
  EXPECT_EQ(wash_out_steps(subject, 100us), 11);
  EXPECT_EQ(wash_out_steps(subject, 1ms), 6);
  EXPECT_EQ(wash_out_steps(subject, 100ms), 1);
}

TEST(Schedule, WashesOutTheBatchesThatTheLoaderMadeInTheMeantime) {
  Subject subject = with_periods({});
  subject.loader_depth = 20;
  EXPECT_EQ(wash_out_steps(subject, 100ms), 23);
}

TEST(Schedule, DealsEveryPermutationAlike) {
  Random random(5);
  std::map<std::vector<int>, int> counts;
  for (int draw = 0; draw < 6000; ++draw) ++counts[permutation(3, random)];
  ASSERT_EQ(counts.size(), 6U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 120);
}

// Every segment must start the loader's workers equally often.
TEST(Segments, HoldAsManyStartsOfTheLoaderAsOthers) {
  StepPlan plan = plans_named({"a"}).front();
  plan.operations.push_back(
      {.name = "log", .phase = Phase::log, .action = HostWork{1}, .every = 20});
  plan.loader = {.depth = 2, .restart_every = 50};
  EXPECT_EQ(common_period(subject_of(with_facts(plan)), 1000), 100);
  EXPECT_EQ(common_period(subject_of(with_facts(plan)), 99), std::nullopt);
}

// With two workers a segment of seven steps has three waits for a batch or four. Whole periods of
// what the step does come before whole turns.
TEST(Segments, HoldWholeTurnsOfALoadersWorkersWhereTheyFit) {
  StepPlan plan = plans_named({"a"}).front();
  plan.loader = {.wait_us = 6000, .depth = 4, .workers = 2};
  const auto period = [&] { return common_period(subject_of(with_facts(plan)), 200); };
  EXPECT_EQ(steps_of(subject_of(with_facts(plan)), {}, 3ms) % 2, 0);
  EXPECT_EQ(period(), 2);
  plan.loader.wait_us = 0;
  EXPECT_EQ(period(), 1) << "nothing to wait for";
  plan.loader = {.wait_us = 6000, .depth = 2, .workers = 3, .restart_every = 160};
  EXPECT_EQ(period(), 160) << "480 steps are too many";
}

}  // namespace
}  // namespace stepgate
