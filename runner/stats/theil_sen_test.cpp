// SPDX-License-Identifier: MIT
#include "stats/theil_sen.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepgate {
namespace {

using Line = std::vector<std::pair<double, double>>;

TEST(TheilSenSlope, IsTheMedianOfTheSlopesOfAllPairs) {
  // Sorted: -0.1, 0.1, 0.15, 0.2, 0.25, 0.25, 0.3, 0.35, 0.4, 0.6.
  EXPECT_NEAR(theil_sen_slope(Line{{0, 1}, {1, 1.4}, {2, 1.3}, {3, 1.9}, {4, 2}}), 0.25, 1e-12);
}

TEST(TheilSenSlope, IsNotMovedByAFewPoints) {
  Line points;
  for (int x = 0; x < 20; ++x) points.emplace_back(x, 3 + 0.5 * x);
  EXPECT_DOUBLE_EQ(theil_sen_slope(points), 0.5);
  for (const int x : {0, 7, 13, 19}) points[static_cast<std::size_t>(x)].second = 1e6;
  EXPECT_DOUBLE_EQ(theil_sen_slope(points), 0.5);
}

TEST(TheilSenSlope, IsNothingOfOnePoint) {
  EXPECT_EQ(theil_sen_slope({}), 0);
  EXPECT_EQ(theil_sen_slope(Line{{1, 5}}), 0);
}

}  // namespace
}  // namespace stepgate
