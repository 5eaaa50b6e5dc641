// SPDX-License-Identifier: MIT
// Moments, trends and quantiles against values worked out by hand.
#include "base/stats/moments.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/stats/quantile.h"

namespace stepgate {
namespace {

TEST(Moments, AreThoseOfASmallSample) {
  const std::array values{2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0};
  const Moments moments = moments_of(values);
  EXPECT_EQ(moments.count, 8);
  EXPECT_DOUBLE_EQ(moments.mean, 5);
  EXPECT_NEAR(moments.variance, 4, 1e-12);
}

TEST(Moments, DoNotCancelFarFromZero) {
  const std::array values{1e9 + 1, 1e9 + 2, 1e9 + 3};
  EXPECT_NEAR(moments_of(values).variance, 2.0 / 3, 1e-6);
}

TEST(Moments, OfNothingAreZero) {
  EXPECT_EQ(moments_of({}).count, 0);
}

TEST(Trend, OfAStraightLineHasNoError) {
  const std::array values{1.0, 1.5, 2.0, 2.5};
  EXPECT_NEAR(trend_of(values).slope, 0.5, 1e-12);
  EXPECT_NEAR(trend_of(values).standard_error, 0, 1e-12);
}

// The flat line at 1/3 leaves squared residuals of (0, 1, 0) that sum to 2/3. There is one degree
// of freedom, and the squared offsets of the positions sum to 2.
TEST(Trend, OfAPeakIsFlatWithTheTextbookError) {
  const std::array values{0.0, 1.0, 0.0};
  EXPECT_NEAR(trend_of(values).slope, 0, 1e-12);
  EXPECT_NEAR(trend_of(values).standard_error, std::sqrt(1.0 / 3), 1e-12);
}

TEST(Quantile, InterpolatesByTypeSeven) {
  const std::vector<double> values{4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
}

TEST(Quantile, NearestRankIsAlwaysOneOfTheValues) {
  const std::vector<double> values{15, 20, 35, 40, 50};
  EXPECT_DOUBLE_EQ(nearest_rank(values, 0.05), 15);
  EXPECT_DOUBLE_EQ(nearest_rank(values, 0.3), 20);
  EXPECT_DOUBLE_EQ(nearest_rank(values, 0.4), 20);
  EXPECT_DOUBLE_EQ(nearest_rank(values, 0.5), 35);
  EXPECT_DOUBLE_EQ(nearest_rank(values, 1), 50);
}

TEST(Quantile, NearestRankOfTwentyValuesAtNinetyFivePercentIsTheNineteenth) {
  std::vector<double> values;
  for (int value = 1; value <= 20; ++value) values.push_back(value);
  EXPECT_DOUBLE_EQ(nearest_rank(values, 0.95), 19);
}

// The quantile 4.3027 of two degrees of freedom is that of printed tables of Student's t.
TEST(HalfIntervalOfMean, IsStudentsOfTheStandardError) {
  const std::vector<double> values{1, 2, 3};
  EXPECT_NEAR(*half_interval_of_mean(values, 0.05), 4.3027 / std::sqrt(3.0), 1e-4);
  EXPECT_FALSE(half_interval_of_mean(std::vector<double>{1}, 0.05));
}

using Line = std::vector<std::pair<double, double>>;

TEST(TheilSenSlope, IsTheMedianOfTheSlopesOfAllPairs) {
  // The slopes, sorted: -0.1, 0.1, 0.15, 0.2, 0.25, 0.25, 0.3, 0.35, 0.4, 0.6.
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
