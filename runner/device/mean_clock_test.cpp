// SPDX-License-Identifier: MIT
// Mean clocks of stamps written by hand.
#include "device/mean_clock.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepgate {
namespace {

TEST(MeanClock, IsCyclesOverTime) {
  const std::vector<ClockStamp> stamps{{1000, 500, 3}, {2000, 2480, 3}, {3000, 4460, 3}};
  EXPECT_DOUBLE_EQ(mean_clock_hertz(stamps).value(), 1.98e9);
}

TEST(MeanClock, NeverComparesCountersOfDifferentMultiprocessors) {
  // The counter of multiprocessor 7 has another origin; the stamps of multiprocessor 3 span the
  // longest time.
  const std::vector<ClockStamp> stamps{{1000, 500, 3}, {2000, 900'000'000, 7}, {3000, 4500, 3}};
  EXPECT_DOUBLE_EQ(mean_clock_hertz(stamps).value(), 2e9);
}

TEST(MeanClock, IsUnknownWhenNoMultiprocessorSawMostOfTheTime) {
  EXPECT_FALSE(mean_clock_hertz(std::vector<ClockStamp>{{1000, 500, 3}, {2000, 900, 7}}));
  EXPECT_FALSE(mean_clock_hertz(
      std::vector<ClockStamp>{{1000, 500, 3}, {2000, 2500, 3}, {9000, 1, 4}, {9500, 1, 5}}));
}

TEST(Clocks, AreCyclesSinceTheStampBeforeOnTheSameMultiprocessor) {
  const std::vector<ClockStamp> stamps{
      {1000, 500, 3}, {2000, 2480, 3}, {3000, 7, 9}, {4000, 1507, 9}, {4000, 1600, 9}};
  const auto clocks = clocks_hertz(stamps);
  ASSERT_EQ(clocks.size(), stamps.size());
  EXPECT_FALSE(clocks[0]);
  EXPECT_DOUBLE_EQ(clocks[1].value(), 1.98e9);
  EXPECT_FALSE(clocks[2]) << "another multiprocessor";
  EXPECT_DOUBLE_EQ(clocks[3].value(), 1.5e9);
  EXPECT_FALSE(clocks[4]) << "no time went by";
}

TEST(MeanClock, IsUnknownWithoutTwoReadingsOrWithAClockThatStandsStill) {
  EXPECT_FALSE(mean_clock_hertz({}));
  EXPECT_FALSE(mean_clock_hertz(std::vector<ClockStamp>{{1000, 500, 3}}));
  EXPECT_FALSE(mean_clock_hertz(std::vector<ClockStamp>{{0, 0, 0}, {0, 0, 0}}));
  EXPECT_FALSE(mean_clock_hertz(std::vector<ClockStamp>{{1000, 500, 3}, {2000, 500, 3}}));
  EXPECT_FALSE(mean_clock_hertz(std::vector<ClockStamp>{{1000, 500, 3}, {2000, 400, 3}}));
}

}  // namespace
}  // namespace stepgate
