// SPDX-License-Identifier: MIT
#include "base/stats/launch_levels.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace stepgate {
namespace {

TEST(LaunchLevels, SeparatesTheNoiseOfLaunchesFromThatWithinThem) {
  const std::uint64_t seed = 20261121;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  std::vector<std::vector<double>> launches;
  for (int launch = 0; launch < 4000; ++launch) {
    const double shared = 0.3 * random.normal();
    launches.emplace_back();
    // Launches have different numbers of superblocks.
    for (int block = 0; block < 2 + launch % 3; ++block)
      launches.back().push_back(5 + shared + 0.2 * random.normal());
  }
  const LaunchLevels levels = launch_levels_of(launches);
  // The tolerances are five standard errors of a variance from some thousands of values.
  EXPECT_NEAR(levels.superblock_variance, 0.04, 0.04 * 5 * 0.016);
  EXPECT_NEAR(levels.launch_variance, 0.09, 0.09 * 5 * 0.035);
}

TEST(LaunchLevels, FindsNoNoiseWhereThereIsNothingToEstimateItFrom) {
  const std::vector<std::vector<double>> one{{1, 2, 3}};
  const std::vector<std::vector<double>> single{{1}, {2}, {3}};
  EXPECT_EQ(launch_levels_of(one).launch_variance, 0);
  EXPECT_EQ(launch_levels_of(single).superblock_variance, 0);
}

TEST(LaunchLevels, NeverYieldsANegativeVariance) {
  const std::vector<std::vector<double>> alike{{-1, 1}, {-1, 1}, {-1, 1}};
  EXPECT_EQ(launch_levels_of(alike).launch_variance, 0);
  EXPECT_DOUBLE_EQ(launch_levels_of(alike).superblock_variance, 2);
}

TEST(LaunchLevels, BuysMoreSuperblocksTheDearerALaunchIs) {
  const LaunchLevels levels{.superblock_variance = 1, .launch_variance = 1};
  EXPECT_EQ(best_superblocks(levels, 16, 1, 10), 4);
  EXPECT_EQ(best_superblocks(levels, 1, 1, 10), 1);
  EXPECT_EQ(best_superblocks(levels, 1e6, 1, 10), 10);
  EXPECT_EQ(best_superblocks(levels, 0, 1, 10), 1);
}

TEST(LaunchLevels, TakesTheMostWhereLaunchesDoNotDifferAndOneWhereNothingIsNoisy) {
  EXPECT_EQ(best_superblocks({.superblock_variance = 1, .launch_variance = 0}, 1, 1, 8), 8);
  EXPECT_EQ(best_superblocks({.superblock_variance = 0, .launch_variance = 1}, 1, 1, 8), 1);
  EXPECT_EQ(best_superblocks({.superblock_variance = 0, .launch_variance = 0}, 1, 1, 8), 1);
}

}  // namespace
}  // namespace stepgate
