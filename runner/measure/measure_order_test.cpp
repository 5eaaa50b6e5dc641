// SPDX-License-Identifier: MIT
// In which order, in which slots and in how many steps variants run, on a scripted device.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "measure/schedule.h"
#include "measure/scripted_request.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

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

}  // namespace
}  // namespace stepgate
