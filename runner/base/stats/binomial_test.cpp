// SPDX-License-Identifier: MIT
#include "base/stats/binomial.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cmath>

namespace stepgate {
namespace {

TEST(ClopperPearson, FollowsTheRuleOfThreeWhenNothingHappened) {
  const RateBounds bounds = clopper_pearson(0, 300, 0.05);
  EXPECT_EQ(bounds.low, 0);
  EXPECT_NEAR(bounds.high, 1 - std::pow(0.05, 1.0 / 300), 1e-9);
  EXPECT_LT(bounds.high, 0.01);
  EXPECT_EQ(clopper_pearson(300, 300, 0.05).high, 1);
}

TEST(ClopperPearson, PutsTheCountAtTheEdgeOfWhatTheBoundsAllow) {
  const RateBounds bounds = clopper_pearson(7, 50, 0.05);
  EXPECT_NEAR(cdf(boost::math::binomial_distribution<>(50, bounds.high), 7), 0.05, 1e-9);
  EXPECT_NEAR(1 - cdf(boost::math::binomial_distribution<>(50, bounds.low), 6), 0.05, 1e-9);
}

}  // namespace
}  // namespace stepgate
