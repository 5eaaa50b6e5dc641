// SPDX-License-Identifier: MIT
// How many steps a segment and its wash-out have.
#include "measure/schedule.h"

#include <gtest/gtest.h>

#include "measure/scripted_device.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(Schedule, ScoresFiveMillisecondsWithinItsLimits) {
  const auto plans = plans_named({"a"});
  MeasureKnobs knobs;
  const auto steps = [&](nanoseconds time) { return segment_steps(plans, knobs, {{time}}); };
  EXPECT_EQ(steps(50us), 50) << "the knob is the most";
  EXPECT_EQ(steps(200us), 26);
  EXPECT_EQ(steps(5ms), 3);
  EXPECT_EQ(steps(1s), 3) << "never fewer than three";
}

TEST(Schedule, GivesEverySegmentTheSameRareOperations) {
  auto plans = plans_named({"a", "b"});
  plans[1].operations.resize(2);
  plans[1].operations[0].every = 8;
  MeasureKnobs knobs;
  EXPECT_EQ(segment_steps(plans, knobs, {{1ms, 1ms}}), 8);
  plans[1].operations[1].every = 1000;
  EXPECT_EQ(segment_steps(plans, knobs, {{1ms, 1ms}}), 6) << "too rare for a segment";
}

TEST(Schedule, WashesOutMoreThanTheQueueHoldsUnlessStepsAreLong) {
  auto plans = plans_named({"a", "b"});
  plans[1].run_ahead_steps = 9;
  const auto steps = [&](nanoseconds time) { return wash_out_steps(plans, {{time, 2 * time}}); };
  EXPECT_EQ(steps(100us), 11);
  EXPECT_EQ(steps(1ms), 6);
  EXPECT_EQ(steps(100ms), 3);
}

TEST(Schedule, WashesOutTheBatchesThatTheLoaderMadeInTheMeantime) {
  auto plans = plans_named({"a"});
  plans[0].loader.depth = 20;
  EXPECT_EQ(wash_out_steps(plans, {{100ms}}), 23);
}

}  // namespace
}  // namespace stepgate
