// SPDX-License-Identifier: MIT
// Order, budget, warm-up and step counts on a scripted device.
#include "measure/measure.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "measure/schedule.h"
#include "measure/scripted_device.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

StepTime always(nanoseconds time) {
  return [time](const std::string&, std::int64_t) { return time; };
}

MeasureRequest request_for(Script& script, std::int64_t rounds) {
  MeasureRequest request;
  request.knobs.rounds = rounds;
  request.seed = 42;
  request.clock = [&script] { return script.now; };
  request.enough = [](const Measurement&) { return false; };
  return request;
}

std::vector<std::vector<int>> orders_of(const Measurement& measurement) {
  std::vector<std::vector<int>> orders;
  for (const Round& round : measurement.rounds) {
    orders.emplace_back();
    for (const Segment& segment : round.segments) orders.back().push_back(segment.variant);
  }
  return orders;
}

Measurement measure_three_variants(std::uint64_t seed) {
  Script script{.step_time = always(1ms)};
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b", "c"});
  MeasureRequest request = request_for(script, 40);
  request.seed = seed;
  return measure(device, plans, request);
}

TEST(Measure, MirrorsEveryRoundAndShufflesAllOrders) {
  std::set<std::vector<int>> orders;
  for (const std::vector<int>& order : orders_of(measure_three_variants(42))) {
    ASSERT_EQ(order.size(), 6U);
    EXPECT_TRUE(std::equal(order.begin(), order.begin() + 3, order.rbegin()));
    EXPECT_EQ(std::set<int>(order.begin(), order.begin() + 3).size(), 3U);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 6U) << "40 rounds of 6 possible orders, seed 42";
}

TEST(Measure, RepeatsItsOrdersFromTheSeed) {
  EXPECT_EQ(orders_of(measure_three_variants(7)), orders_of(measure_three_variants(7)));
  EXPECT_NE(orders_of(measure_three_variants(7)), orders_of(measure_three_variants(8)));
}

TEST(Measure, KeepsTheOrderOfTheFileOrItsReverseWhenAsked) {
  Random random(1);
  std::map<std::vector<int>, int> counts;
  for (int round = 0; round < 400; ++round) ++counts[round_order(RoundOrder::abba, 3, random)];
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_NEAR((counts[{0, 1, 2, 2, 1, 0}]), 200, 50);
  EXPECT_NEAR((counts[{2, 1, 0, 0, 1, 2}]), 200, 50);
}

TEST(Measure, RunsTheSameNumberOfStepsOfEveryVariant) {
  Script script{.step_time = [](const std::string& variant, std::int64_t) -> nanoseconds {
    return variant == "slow" ? 3ms : 1ms;
  }};
  ScriptedDevice device(script);
  const auto plans = plans_named({"fast", "slow"});
  measure(device, plans, request_for(script, 5));
  std::map<std::string, std::int64_t> steps;
  for (const auto& [variant, observe] : script.runs) {
    steps[variant] += observe.wash_out_steps + observe.steps;
  }
  EXPECT_EQ(steps["fast"], steps["slow"]);
}

TEST(Measure, StopsWhenThereIsEnoughEvidence) {
  Script script{.step_time = always(1ms)};
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  MeasureRequest request = request_for(script, 100);
  request.enough = [](const Measurement& measurement) { return measurement.rounds.size() == 9; };
  std::vector<std::int64_t> progress;
  request.progress = [&](const Progress& done) { progress.push_back(done.rounds); };
  const Measurement measurement = measure(device, plans, request);
  EXPECT_EQ(measurement.rounds.size(), 9U);
  EXPECT_FALSE(measurement.budget_spent);
  EXPECT_EQ(progress, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Measure, StartsNoRoundThatCannotEndInsideTheBudget) {
  Script script{.step_time = always(1ms)};
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  MeasureRequest request = request_for(script, 100'000);
  request.knobs.max_seconds = 3;
  const Measurement measurement = measure(device, plans, request);
  EXPECT_TRUE(measurement.budget_spent);
  EXPECT_LE(measurement.wall_time, 3s);
  EXPECT_GT(measurement.wall_time, 2800ms);
  EXPECT_EQ(measurement.device_time, measurement.wall_time) << "this clock only runs during steps";
}

TEST(Measure, RunsTheFewestRoundsWhateverTheBudget) {
  Script script{.step_time = always(10ms)};
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  MeasureRequest request = request_for(script, 100);
  request.knobs.max_seconds = 0.001;
  EXPECT_EQ(measure(device, plans, request).rounds.size(), 7U);
}

TEST(Measure, ReadsTheEnvironmentBetweenRoundsOnly) {
  Script script{.step_time = always(1ms)};
  std::vector<std::size_t> runs_before;
  script.environment = [&](std::int64_t reading) {
    runs_before.push_back(script.runs.size());
    EnvironmentReading read;
    read.temperature_celsius = static_cast<double>(reading);
    return read;
  };
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b", "c"});
  const Measurement measurement = measure(device, plans, request_for(script, 4));
  ASSERT_EQ(runs_before.size(), 5U);
  for (std::size_t reading = 1; reading < runs_before.size(); ++reading) {
    EXPECT_EQ(runs_before[reading] - runs_before[reading - 1],
              measurement.rounds[reading - 1].segments.size());
  }
  EXPECT_EQ(measurement.environment_before.value().temperature_celsius, 0);
  for (std::size_t round = 0; round < 4; ++round) {
    EXPECT_EQ(measurement.rounds[round].environment_after.value().temperature_celsius,
              static_cast<double>(round + 1));
  }
}

TEST(Measure, WarmsUpUntilTheStepTimesAreSteady) {
  Script script{.step_time = [](const std::string&, std::int64_t step) -> nanoseconds {
    return std::chrono::microseconds(1000 + std::max<std::int64_t>(0, 500 - step));
  }};
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  const Measurement measurement = measure(device, plans, request_for(script, 3));
  EXPECT_TRUE(measurement.steady);
  EXPECT_GE(measurement.warmup_steps, 500);
  EXPECT_LE(measurement.warmup_steps, 800);
}

TEST(Measure, SaysWhenItNeverBecameSteady) {
  Script script;
  script.step_time = [](const std::string&, std::int64_t step) -> nanoseconds {
    return std::chrono::microseconds(1000 + step);
  };
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  MeasureRequest request = request_for(script, 3);
  request.knobs.max_seconds = 6;
  const Measurement measurement = measure(device, plans, request);
  EXPECT_FALSE(measurement.steady);
  EXPECT_EQ(measurement.rounds.size(), 3U);
}

TEST(Measure, RunsTheStepsOfWarmUpThatTheScenarioGives) {
  Script script{.step_time = always(1ms)};
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  MeasureRequest request = request_for(script, 2);
  request.knobs.warmup_steps = 33;
  const Measurement measurement = measure(device, plans, request);
  EXPECT_EQ(measurement.warmup_steps, 33);
  EXPECT_EQ(measurement.rounds[0].segments[0].first_step, 33 + measurement.wash_out_steps);
}

TEST(Measure, ScoresNothingWithoutAClockButComparesLosses) {
  Script script;
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  const Measurement agreeing = measure(device, plans, request_for(script, 5));
  EXPECT_TRUE(agreeing.rounds.empty());
  EXPECT_FALSE(agreeing.disagreement);
  script.loss = [](const std::string& variant, std::int64_t step) {
    return variant == "b" && step == 5 ? 2.0F : 1.0F;
  };
  const Measurement disagreeing = measure(device, plans, request_for(script, 5));
  ASSERT_TRUE(disagreeing.disagreement);
  EXPECT_EQ(disagreeing.disagreement->step, 5);
}

TEST(Measure, EndsAtTheRoundWhoseLossesDisagree) {
  Script script{.step_time = always(1ms)};
  script.loss = [](const std::string& variant, std::int64_t step) {
    return variant == "b" && step == 300 ? 2.0F : 1.0F;
  };
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  const Measurement measurement = measure(device, plans, request_for(script, 100));
  ASSERT_TRUE(measurement.disagreement);
  EXPECT_EQ(measurement.disagreement->step, 300);
  EXPECT_LT(measurement.rounds.size(), 10U);
}

TEST(Schedule, ScoresTwentyMillisecondsWithinItsLimits) {
  const auto plans = plans_named({"a"});
  MeasureKnobs knobs;
  const auto steps = [&](nanoseconds time) { return segment_steps(plans, knobs, {{time}}); };
  EXPECT_EQ(steps(50us), 50) << "the knob is the most";
  EXPECT_EQ(steps(1ms), 21);
  EXPECT_EQ(steps(5ms), 5);
  EXPECT_EQ(steps(1s), 3) << "never fewer than three";
}

TEST(Schedule, GivesEverySegmentTheSameRareOperations) {
  auto plans = plans_named({"a", "b"});
  plans[1].operations.resize(2);
  plans[1].operations[0].every = 8;
  MeasureKnobs knobs;
  EXPECT_EQ(segment_steps(plans, knobs, {{1ms, 1ms}}), 24);
  plans[1].operations[1].every = 1000;
  EXPECT_EQ(segment_steps(plans, knobs, {{1ms, 1ms}}), 21) << "too rare for a segment";
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
