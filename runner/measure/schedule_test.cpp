// SPDX-License-Identifier: MIT
// How many steps a segment and its wash-out have.
#include "measure/schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "measure/testing/fake_device.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

PlannedStep plan_with_periods(const std::vector<std::int64_t>& periods) {
  StepPlan plan = plans_named({"a"}).front();
  for (const std::int64_t every : periods)
    plan.operations.push_back({.name = "work", .action = HostWork{1}, .every = every});
  return with_facts(std::move(plan));
}

TEST(Schedule, ScoresFiveMillisecondsWithinItsLimits) {
  const PlannedStep plan = plan_with_periods({});
  const MeasureKnobs knobs;
  const auto steps = [&](nanoseconds time) { return segment_steps(plan, knobs, time); };
  EXPECT_EQ(steps(50us), 50) << "the knob is the most";
  EXPECT_EQ(steps(200us), 26);
  EXPECT_EQ(steps(5ms), 2);
  EXPECT_EQ(steps(1s), 1);
}

TEST(Schedule, GivesEverySegmentWholePeriodsOfRareOperations) {
  const MeasureKnobs knobs;
  EXPECT_EQ(segment_steps(plan_with_periods({8}), knobs, 1ms), 8);
  EXPECT_EQ(segment_steps(plan_with_periods({8, 12}), knobs, 1ms), 24);
}

TEST(Schedule, GoesBeyondItsKnobForWholePeriodsUpToATenthOfASecond) {
  const MeasureKnobs knobs;
  EXPECT_EQ(segment_steps(plan_with_periods({300}), knobs, 300us), 300);
  EXPECT_EQ(segment_steps(plan_with_periods({300}), knobs, 400us), 13) << "120 ms are too long";
  EXPECT_EQ(segment_steps(plan_with_periods({300}), {.steps = 300}, 400us), 300)
      << "but not where the scenario asks for them";
}

TEST(Schedule, WashesOutMoreThanTheQueueHoldsUnlessStepsAreLong) {
  StepPlan plan = plan_with_periods({});
  plan.steps_in_flight = 9;
  EXPECT_EQ(wash_out_steps(with_facts(plan), 100us), 11);
  EXPECT_EQ(wash_out_steps(with_facts(plan), 1ms), 6);
  EXPECT_EQ(wash_out_steps(with_facts(plan), 100ms), 1);
}

TEST(Schedule, WashesOutTheBatchesThatTheLoaderMadeInTheMeantime) {
  StepPlan plan = plan_with_periods({});
  plan.loader.depth = 20;
  EXPECT_EQ(wash_out_steps(with_facts(plan), 100ms), 23);
}

TEST(Schedule, DealsEveryPermutationAlike) {
  Random random(5);
  std::map<std::vector<int>, int> counts;
  for (int draw = 0; draw < 6000; ++draw) ++counts[permutation(3, random)];
  ASSERT_EQ(counts.size(), 6U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 120);
}

// Otherwise some segments would have one start of the loader's workers more than others.
TEST(Segments, HoldAsManyStartsOfTheLoaderAsOthers) {
  StepPlan plan;
  plan.operations.push_back(
      {.name = "log", .phase = Phase::log, .action = HostWork{1}, .every = 20});
  plan.loader = {.depth = 2, .restart_every = 50};
  EXPECT_EQ(common_period(plan, 1000), 100);
  EXPECT_EQ(common_period(plan, 99), std::nullopt);
  plan.loader.depth = 0;  // no workers to start
  EXPECT_EQ(common_period(plan, 1000), 20);
}

}  // namespace
}  // namespace stepgate
