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

// The order of the variants in every pass.
std::vector<std::vector<int>> orders_of(const Measurement& measurement) {
  std::vector<std::vector<int>> orders;
  const std::size_t segments = measurement.variants.size();
  for (const Round& round : measurement.rounds) {
    for (std::size_t first = 0; first < round.segments.size(); first += segments) {
      orders.emplace_back();
      for (std::size_t index = first; index < first + segments; ++index) {
        orders.back().push_back(round.segments[index].variant);
      }
    }
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

TEST(Measure, RotatesAShuffledOrderOverTheThreePassesOfARound) {
  std::set<std::vector<int>> first_orders;
  const auto orders = orders_of(measure_three_variants(42));
  ASSERT_EQ(orders.size(), 120U);
  for (std::size_t round = 0; round < orders.size(); round += 3) {
    std::vector<int> order = orders[round];
    first_orders.insert(order);
    for (std::size_t pass = 1; pass < 3; ++pass) {
      std::rotate(order.begin(), order.begin() + 1, order.end());
      EXPECT_EQ(orders[round + pass], order);
    }
  }
  EXPECT_EQ(first_orders.size(), 6U) << "40 rounds of 6 possible orders, seed 42";
}

// A drift that is linear in time then cancels in every ratio.
TEST(Measure, RunsEveryVariantInEveryPlaceOnceARound) {
  const auto orders = orders_of(measure_three_variants(42));
  for (std::size_t round = 0; round < orders.size(); round += 3) {
    for (std::size_t place = 0; place < 3; ++place) {
      const std::set<int> variants{orders[round][place], orders[round + 1][place],
                                   orders[round + 2][place]};
      EXPECT_EQ(variants.size(), 3U);
    }
  }
}

// What sticks to a slot, or to being loaded first, then cancels in every ratio of two variants.
TEST(Measure, HasEveryVariantInEverySlotOnceARound) {
  std::set<std::vector<int>> first_arrangements;
  for (const Round& round : measure_three_variants(42).rounds) {
    std::map<std::pair<int, int>, int> segments;  // by variant and slot
    std::vector<int> arrangement(3);
    for (const Segment& segment : round.segments) ++segments[{segment.variant, segment.slot}];
    for (std::size_t index = 0; index < 3; ++index) {
      const Segment& segment = round.segments[index];
      arrangement[static_cast<std::size_t>(segment.variant)] = segment.slot;
    }
    first_arrangements.insert(arrangement);
    ASSERT_EQ(segments.size(), 9U);
    for (const auto& [place, count] : segments) EXPECT_EQ(count, 1);
  }
  EXPECT_EQ(first_arrangements.size(), 6U) << "40 rounds of 6 possible arrangements, seed 42";
}

TEST(Measure, StartsEveryVariantAnewInEveryPass) {
  for (const Round& round : measure_three_variants(42).rounds) {
    for (std::size_t index = 0; index < round.segments.size(); index += 3) {
      std::set<std::int64_t> first_steps;
      for (std::size_t segment = index; segment < index + 3; ++segment) {
        first_steps.insert(round.segments[segment].first_step);
      }
      EXPECT_EQ(first_steps, (std::set<std::int64_t>{round.segments[0].first_step}));
    }
  }
}

TEST(Measure, RepeatsItsOrdersFromTheSeed) {
  EXPECT_EQ(orders_of(measure_three_variants(7)), orders_of(measure_three_variants(7)));
  EXPECT_NE(orders_of(measure_three_variants(7)), orders_of(measure_three_variants(8)));
}

TEST(Measure, KeepsTheOrderOfTheFileOrItsReverseWhenAsked) {
  Random random(1);
  std::map<std::vector<int>, int> counts;
  for (int round = 0; round < 400; ++round) {
    ++counts[pass_orders(RoundOrder::abba, 3, random).front()];
  }
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_NEAR((counts[{0, 1, 2}]), 200, 50);
  EXPECT_NEAR((counts[{2, 1, 0}]), 200, 50);
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

TEST(Measure, RefusesABudgetWithoutRoomForTheFewestRounds) {
  Script script{.step_time = always(10ms)};
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  MeasureRequest request = request_for(script, 100);
  request.knobs.warmup_steps = 10;
  request.knobs.max_seconds = 1;
  const Measurement refused = measure(device, plans, request);
  EXPECT_TRUE(refused.budget_refused);
  EXPECT_TRUE(refused.rounds.empty());
  EXPECT_GT(refused.expected.round, 100ms);
  EXPECT_LT(refused.expected.most_rounds, 7);
  const double enough =
      std::chrono::duration<double>(script.now + refused.expected.round * request.fewest_rounds)
          .count();
  script.now = 0ms;
  request.knobs.max_seconds = enough + 0.001;
  const Measurement measured = measure(device, plans, request);
  EXPECT_FALSE(measured.budget_refused);
  EXPECT_GE(measured.rounds.size(), 7U);
}

TEST(Measure, ExpectsWhatARoundThenCosts) {
  Script script{.step_time = always(3ms)};
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b", "c"});
  const auto before = std::make_shared<nanoseconds>(0);
  const auto cost = std::make_shared<nanoseconds>(0);
  MeasureRequest request = request_for(script, 10);
  request.progress = [=](const Progress& now) {
    if (now.rounds == 1) *cost = now.spent - *before;
    *before = now.spent;
  };
  const Measurement measurement = measure(device, plans, request);
  EXPECT_EQ(measurement.expected.round, *cost);
  EXPECT_EQ(measurement.expected.most_rounds, 10);
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
  const Measurement measurement = measure(device, plans, request_for(script, 8));
  ASSERT_EQ(runs_before.size(), 9U);
  for (std::size_t reading = 1; reading < runs_before.size(); ++reading) {
    // Every pass settles each variant before its segments.
    EXPECT_EQ(runs_before[reading] - runs_before[reading - 1],
              2 * measurement.rounds[reading - 1].segments.size());
  }
  EXPECT_EQ(measurement.environment_before.value().temperature_celsius, 0);
  for (std::size_t round = 0; round < 8; ++round) {
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
  const Measurement measurement = measure(device, plans, request_for(script, 10));
  EXPECT_TRUE(measurement.steady);
  EXPECT_GE(measurement.warmup_steps, 400);
  EXPECT_LE(measurement.warmup_steps, 800);
}

TEST(Measure, SaysWhenItNeverBecameSteady) {
  Script script;
  script.step_time = [](const std::string&, std::int64_t step) -> nanoseconds {
    return std::chrono::microseconds(1000 + step);
  };
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  MeasureRequest request = request_for(script, 8);
  request.knobs.max_seconds = 20;
  const Measurement measurement = measure(device, plans, request);
  EXPECT_FALSE(measurement.steady);
  EXPECT_EQ(measurement.rounds.size(), 8U);
}

TEST(Measure, RunsTheStepsOfWarmUpThatTheScenarioGivesAfterEveryLoad) {
  Script script{.step_time = always(1ms)};
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  MeasureRequest request = request_for(script, 8);
  request.knobs.warmup_steps = 33;
  const Measurement measurement = measure(device, plans, request);
  EXPECT_EQ(measurement.warmup_steps, 33);
  ASSERT_EQ(measurement.rounds.size(), 8U);
  for (const Round& round : measurement.rounds) {
    EXPECT_EQ(round.segments[0].first_step, 33 + measurement.wash_out_steps);
  }
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
  std::int64_t lies_at = -1;
  script.loss = [&](const std::string& variant, std::int64_t step) {
    return variant == "b" && step == lies_at ? 2.0F : 1.0F;
  };
  ScriptedDevice device(script);
  const auto plans = plans_named({"a", "b"});
  MeasureRequest request = request_for(script, 100);
  request.progress = [&](const Progress& now) {
    if (now.rounds == 3) lies_at = 10;
  };
  const Measurement measurement = measure(device, plans, request);
  ASSERT_TRUE(measurement.disagreement);
  EXPECT_EQ(measurement.disagreement->step, 10);
  EXPECT_EQ(measurement.rounds.size(), 3U);
}

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
