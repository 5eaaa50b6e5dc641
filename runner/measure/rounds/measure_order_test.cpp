// SPDX-License-Identifier: MIT
// Tests the order, the slots and the number of steps of variants, on a fake device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "device/simulated/simulated_device.h"
#include "measure/rounds/carry_over.h"
#include "measure/testing/fake_request.h"
#include "plan/compose/build_step_plan.h"
#include "plan/derive/inject.h"
#include "tests/round_numbers.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

Measurement measure_three_variants(std::uint64_t seed, std::int64_t rounds = 60) {
  Script script{.step_time = always(1ms)};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b", "c"});
  MeasureRequest request = request_for(rounds);
  request.seed = seed;
  return measure(runner, subjects, request);
}

std::vector<int> order_of(const Round& round) {
  std::vector<int> order;
  for (const Segment& segment : round.segments) order.push_back(segment.variant);
  return order;
}

std::vector<std::vector<int>> orders_of(const Measurement& measurement) {
  std::vector<std::vector<int>> orders;
  for (const Round& round : measurement.rounds) orders.push_back(order_of(round));
  return orders;
}

std::vector<int> slots_of(const Round& round) {
  std::vector<int> slots(3);
  for (const Segment& segment : round.segments) {
    slots[static_cast<std::size_t>(segment.variant)] = segment.slot;
  }
  return slots;
}

// With the order and its mirror, a drift that is linear in time cancels in every ratio.
TEST(Measure, RunsAnOrderAndItsMirrorInEveryRound) {
  for (std::vector<int> order : orders_of(measure_three_variants(42))) {
    ASSERT_EQ(order.size(), 6U);
    const std::vector<int> first(order.begin(), order.begin() + 3);
    EXPECT_EQ(std::set<int>(first.begin(), first.end()).size(), 3U);
    std::vector<int> mirrored = order;
    std::reverse(mirrored.begin(), mirrored.end());
    EXPECT_EQ(order, mirrored);
  }
}

TEST(Measure, DealsOrderAndSlotsAnewInEveryRoundAndApartFromEachOther) {
  std::set<std::vector<int>> orders;
  std::set<std::vector<int>> slots;
  std::set<std::pair<std::vector<int>, std::vector<int>>> both;
  for (const Round& round : measure_three_variants(42, 200).rounds) {
    orders.insert(order_of(round));
    slots.insert(slots_of(round));
    both.emplace(order_of(round), slots_of(round));
  }
  EXPECT_EQ(orders.size(), 6U);
  EXPECT_EQ(slots.size(), 6U);
  EXPECT_EQ(both.size(), 36U) << "200 rounds, seed 42";
}

TEST(Measure, LoadsEveryVariantOnceARound) {
  std::size_t loads = 0;
  for (const std::int64_t rounds : {10, 30}) {
    Script script{.step_time = always(1ms)};
    FakeRunner runner(script);
    const auto subjects = subjects_named({"a", "b", "c"});
    measure(runner, subjects, request_for(rounds));
    if (rounds == 30) {
      EXPECT_EQ(script.draws.size() - loads, 60U);
    }
    loads = script.draws.size();
  }
}

TEST(Measure, DealsTheFirstStepAndTheLoadersDrawsToAllVariantsOfARoundAlike) {
  Script script{.step_time = always(1ms)};
  FakeRunner runner(script);
  auto subjects = subjects_named({"a", "b"});
  subjects[1].periodic = {{.name = "work", .every = 7}};
  measure(runner, subjects, request_for(60));
  std::set<std::int64_t> first_steps;
  std::set<std::uint64_t> loaders;
  for (std::size_t load = 0; load < script.draws.size(); load += 2) {
    EXPECT_EQ(script.draws[load].first_step, script.draws[load + 1].first_step);
    EXPECT_EQ(script.draws[load].loader, script.draws[load + 1].loader);
    first_steps.insert(script.draws[load].first_step);
    loaders.insert(script.draws[load].loader);
  }
  EXPECT_EQ(first_steps, (std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(loaders.size(), script.draws.size() / 2);
}

// Each of two variants then follows itself equally often.
TEST(Measure, LetsTheFirstVariantOfTheOrderFollowItself) {
  Script script{.step_time = always(1ms)};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  for (const Round& round : measure(runner, subjects, request_for(20)).rounds) {
    ASSERT_EQ(round.segments.size(), 4U);
    const std::vector<std::int64_t> own{round.segments[0].own_steps, round.segments[1].own_steps,
                                        round.segments[2].own_steps, round.segments[3].own_steps};
    const std::int64_t steps = round.segments[0].steps;
    EXPECT_EQ(own, (std::vector<std::int64_t>{steps, 0, steps, 0}));
  }
}

TEST(Measure, RepeatsItsOrdersFromTheSeed) {
  EXPECT_EQ(orders_of(measure_three_variants(7)), orders_of(measure_three_variants(7)));
  EXPECT_NE(orders_of(measure_three_variants(7)), orders_of(measure_three_variants(8)));
}

MeasureRequest interleaved_request(std::int64_t rounds) {
  MeasureRequest request = request_for(rounds);
  request.knobs.interleave = Interleave::automatic;
  return request;
}

TEST(Measure, InterleavesShortSegmentsWhereThePlansAllowIt) {
  Script script{.step_time = always(100us)};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  const Measurement measurement = measure(runner, subjects, interleaved_request(8));
  EXPECT_EQ(measurement.segments_because, "");
  ASSERT_EQ(measurement.rounds.size(), 8U);
  for (const Round& round : measurement.rounds) {
    ASSERT_EQ(round.segments.size(), 2U);
    for (const Segment& segment : round.segments) {
      EXPECT_EQ(segment.elapsed, segment.steps * 100us);
      EXPECT_EQ(std::ssize(segment.step_times), segment.steps);
      EXPECT_GE(segment.steps, 90);
      const double own =
          static_cast<double>(segment.own_steps) / static_cast<double>(segment.steps);
      EXPECT_NEAR(own, 0.25, 0.15) << "half of the cycles begin with it, half of those before end";
      EXPECT_EQ(segment.own_elapsed, segment.own_steps * 100us);
    }
  }
}

// The unscored steps fill the queue for at least 5 ms before short segments, which have three steps
// of each of the two variants.
TEST(Measure, RunsTheStepsOfWarmUpThatTheScenarioGivesBeforeItsShortSegments) {
  const auto segments_of_a_round = [](std::optional<std::int64_t> warmup) {
    std::map<std::int64_t, std::size_t> runs;
    for (const std::int64_t rounds : {8, 12}) {
      Script script{.step_time = always(1ms)};
      FakeRunner runner(script);
      MeasureRequest request = interleaved_request(rounds);
      request.knobs.warmup_steps = warmup;
      EXPECT_EQ(measure(runner, subjects_named({"a", "b"}), request).segments_because, "");
      runs[rounds] = script.runs.size();
    }
    return (runs[12] - runs[8]) / 4;
  };
  EXPECT_EQ(segments_of_a_round({}), 2U * (1 + 12));
  EXPECT_EQ(segments_of_a_round(33), 2U * (11 + 12));
  EXPECT_EQ(segments_of_a_round(34), 2U * (12 + 12));
}

// Rounds are so short that one of four variants follows itself in only two rounds of five.
TEST(Measure, InterleavesManyVariantsWhateverTheSeed) {
  const auto subjects = subjects_named({"a", "b", "c", "d"});
  MeasureRequest request = interleaved_request(1);
  for (request.seed = 1; request.seed <= 40; ++request.seed) {
    Script script{.step_time = always(1ms)};
    FakeRunner runner(script);
    EXPECT_EQ(measure(runner, subjects, request).segments_because, "") << "seed " << request.seed;
  }
}

// Independently drawn orders need 16 trials on average.
TEST(Measure, NeedsFewTrialsToCompareManyVariants) {
  const auto subjects = subjects_named({"a", "b", "c", "d", "e", "f"});
  MeasureRequest request = interleaved_request(1);
  const std::size_t segments_of_a_round = subjects.size() * (1 + 12);
  double trials = 0;
  for (request.seed = 1; request.seed <= 40; ++request.seed) {
    Script script{.step_time = always(1ms)};
    FakeRunner runner(script);
    EXPECT_EQ(measure(runner, subjects, request).segments_because, "") << "seed " << request.seed;
    // The two other rounds are the one that shows what a round costs, and the measured round
    // itself.
    trials += static_cast<double>(script.runs.size() / segments_of_a_round) - 2;
  }
  EXPECT_LT(trials / 40, 8);
}

TEST(Measure, KeepsToSegmentsWhereStepsAreLongOrTheScenarioAsksForThem) {
  Script script{.step_time = always(10ms)};
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  EXPECT_EQ(measure(runner, subjects, interleaved_request(2)).segments_because,
            "a step of 'a' takes more than 2 ms");
  script.step_time = always(100us);
  EXPECT_EQ(measure(runner, subjects, request_for(2)).segments_because, "the scenario asks for it");
}

// Each step of b leaves 20 us of its work to the step that follows.
TEST(Measure, KeepsToSegmentsWhereAVariantLeavesItsWorkToTheOther) {
  Script script;
  script.step_time = [&](const std::string& variant, std::int64_t) -> nanoseconds {
    const bool follows_b =
        script.runs.size() > 1 && script.runs[script.runs.size() - 2].first == "b";
    return follows_b && variant == "a" ? 120us : 100us;
  };
  FakeRunner runner(script);
  const auto subjects = subjects_named({"a", "b"});
  const Measurement measurement = measure(runner, subjects, interleaved_request(12));
  EXPECT_NE(measurement.segments_because.find("disturb each other"), std::string::npos)
      << measurement.segments_because;
  const auto carried = carry_over_between(measurement.rounds, 0, 1);
  ASSERT_TRUE(carried);
  EXPECT_LT(carried->size, -0.05) << "segments show it too";
}

// Returns two variants whose kernels spin for `kernel_us` on the simulated device; `busier` then
// changes the plans.
std::vector<PlannedStep> spinning(std::int64_t kernel_us,
                                  const std::function<void(std::vector<StepPlan>&)>& busier) {
  Scenario scenario;
  scenario.name = "by_hand";
  for (const char* name : {"plain", "busy"}) {
    Knobs knobs;
    knobs.transfer.host = HostMemory::resident;
    knobs.model = {.kind = ModelKind::spin, .kernels = 40, .kernel_us = kernel_us};
    scenario.variants.push_back({name, knobs, {}});
  }
  std::vector<StepPlan> plans = build_step_plans(scenario, 1);
  busier(plans);
  return with_facts(std::move(plans));
}

// log(second / first) of the mean step times in long runs of each variant alone.
double ratio_alone(Device& device, const std::vector<PlannedStep>& plans) {
  double ratio = 0;
  for (const StepPlan& plan : plans) {
    const StepResult alone = device.load(plan)->run({.wash_out_steps = 100, .steps = 400});
    ratio = std::log(static_cast<double>(alone.elapsed->count())) - ratio;
  }
  return ratio;
}

double ratio_in(const Round& round) {
  std::map<int, double> times;
  for (const Segment& segment : round.segments)
    times[segment.variant] += static_cast<double>(segment.elapsed.count() / segment.steps);
  return std::log(times[1] / times[0]);
}

// Alone, the device waits for the busy host. Between steps of the other variant the host stays
// ahead of the device, so that steps after their own variant are as fast as all others.
TEST(Measure, KeepsToSegmentsWhereTheHostWorksAheadInTheTimeOfTheOther) {
  const std::vector<PlannedStep> plans = spinning(4, [](auto& made) {
    inject(made[1], {.kind = InjectionKind::host_delay, .duration = 60us});
  });
  const auto device =
      make_simulated_device(profile_of_round_numbers({.within_rounds = 0.003}), {.seed = 1});
  const Measurement measurement = measure(*device, plans, interleaved_request(6));
  EXPECT_NE(measurement.segments_because.find(
                "the host issues steps of 'busy' while the device is at those of 'plain'"),
            std::string::npos)
      << measurement.segments_because;
  const double alone = ratio_alone(*device, plans);
  ASSERT_GT(alone, 0.05);
  for (const Round& round : measurement.rounds) EXPECT_NEAR(ratio_in(round), alone, 0.02);
}

// The host's last work in a step overlaps the end of its kernels and delays the next step. If
// variants alternated after every single step, this delay would be charged to the other variant.
TEST(Measure, ChargesWorkOfTheHostAtTheEndOfAStepToItsOwnVariant) {
  const std::vector<PlannedStep> plans = spinning(
      1, [](auto& made) { inject(made[1], {.kind = InjectionKind::host_delay, .duration = 2us}); });
  const auto device = make_simulated_device(profile_of_round_numbers({}), {.seed = 1});
  const Measurement measurement = measure(*device, plans, interleaved_request(6));
  EXPECT_EQ(measurement.segments_because, "");
  const double alone = ratio_alone(*device, plans);
  ASSERT_GT(alone, 0.01);
  for (const Round& round : measurement.rounds) EXPECT_NEAR(ratio_in(round), alone, 0.1 * alone);
}

TEST(CarryOver, IsHowFarTheRatioIsFromThatAfterStepsOfTheirOwn) {
  Round round;
  round.segments = {
      {.variant = 0, .steps = 20, .elapsed = 2200us, .own_steps = 10, .own_elapsed = 1000us},
      {.variant = 1, .steps = 20, .elapsed = 2000us, .own_steps = 10, .own_elapsed = 1000us}};
  EXPECT_NEAR(carry_over_in(round, 0).value(), std::log(1.0 / 1.1), 1e-12);
  EXPECT_NEAR(carry_over_in(round, 1).value(), 0, 1e-12);
  std::vector<Round> rounds(4, round);
  EXPECT_NEAR(carry_over_between(rounds, 0, 1)->size, std::log(1.0 / 1.1), 1e-12);
  EXPECT_TRUE(is_shown(*carry_over_between(rounds, 0, 1))) << "the same in every round";
  EXPECT_FALSE(carry_over_between(std::span(rounds).first(2), 0, 1));
  EXPECT_FALSE(run_ahead_between(rounds, 0, 1)) << "the host's time is unknown";
  for (Round& one : rounds) {
    one.segments[0].host_busy = 3300us;  // 1.5 times the time of its steps
    one.segments[1].host_busy = 1500us;
  }
  EXPECT_NEAR(run_ahead_between(rounds, 0, 1)->size, std::log(1.5), 1e-12);
  EXPECT_NEAR(run_ahead_between(rounds, 1, 0)->size, -std::log(1.5), 1e-12);
}

}  // namespace
}  // namespace stepgate
