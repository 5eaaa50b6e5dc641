// SPDX-License-Identifier: MIT
// The length of segments and the number of orders, from pilots written down by the test.
#include "measure/pilot.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/random.h"

namespace stepgate {
namespace {

// A variant that pays so many steps' time once a segment, beside one that pays nothing.
TimedOrder with_carry_over(double steps_paid, double noise, std::uint64_t seed,
                           std::vector<std::int64_t>* lengths = nullptr) {
  return [=, random = Random(seed)](std::int64_t steps) mutable {
    if (lengths) lengths->push_back(steps);
    const double paid = std::log1p(steps_paid / static_cast<double>(steps));
    return std::vector<double>{noise * random.normal(), paid + noise * random.normal()};
  };
}

TEST(Pilot, KeepsTheFirstLengthWhenNothingCarriesOver) {
  std::vector<std::int64_t> lengths;
  const Pilot pilot = choose_segment(12, 200, with_carry_over(0, 0.0001, 1, &lengths));
  EXPECT_TRUE(pilot.agrees);
  EXPECT_EQ(pilot.segment_steps, 12);
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{12, 48, 12, 48, 12, 48, 12, 48}));
}

// 0.02 steps in 5 are 0.4 %; in 20, 0.1 %: the difference is a tenth of a percent from 15 steps on.
TEST(Pilot, LengthensSegmentsUntilWhatCarriesOverDoesNotMatter) {
  const Pilot pilot = choose_segment(5, 200, with_carry_over(0.02, 1e-6, 2));
  EXPECT_TRUE(pilot.agrees);
  EXPECT_EQ(pilot.segment_steps, 20);
  EXPECT_LE(pilot.disagreement, 0.001);
}

TEST(Pilot, SaysWhenEvenTheLongestSegmentsDisagree) {
  const Pilot pilot = choose_segment(5, 15, with_carry_over(1, 1e-6, 3));
  EXPECT_FALSE(pilot.agrees);
  EXPECT_EQ(pilot.segment_steps, 10);
  EXPECT_NEAR(pilot.disagreement, std::log(1.1 / 1.025), 1e-4);
}

TEST(Pilot, DoesNotTakeNoiseForCarryOver) {
  int lengthened = 0;
  constexpr int pilots = 400;
  for (int index = 0; index < pilots; ++index) {
    const auto seed = static_cast<std::uint64_t>(index);
    lengthened += choose_segment(50, 200, with_carry_over(0, 0.02, seed)).segment_steps > 50;
  }
  EXPECT_LE(lengthened, pilots / 10) << "seeds from 0";
}

TEST(Pilot, RunsMoreOrdersALoadWhereOrdersScatterAndLoadingIsDear) {
  EXPECT_EQ(orders_per_pass(2, 0.0005), 1);
  EXPECT_EQ(orders_per_pass(2, 0.006), 2);
  EXPECT_EQ(orders_per_pass(0.1, 0.006), 1);
  EXPECT_EQ(orders_per_pass(2, 0.5), 4);
}

TEST(Pilot, ExpectsLessNoiseOfARoundWithMorePassesAndOrders) {
  const Pilot one{.deviation = 0.02, .orders_per_pass = 1};
  const Pilot four{.deviation = 0.02, .orders_per_pass = 4};
  EXPECT_NEAR(round_deviation(one, 1) / round_deviation(one, 4), 2, 1e-9);
  EXPECT_LT(round_deviation(four, 2), 0.6 * round_deviation(one, 2));
}

}  // namespace
}  // namespace stepgate
