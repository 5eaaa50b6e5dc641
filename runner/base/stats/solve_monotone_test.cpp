// SPDX-License-Identifier: MIT
#include "base/stats/solve_monotone.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace stepgate {
namespace {

// An increasing function from 0 to 1.
double share_of(double bytes) {
  return bytes / (bytes + 1e6);
}

SolveRequest request_for(double aim) {
  return {.aim = aim, .tolerance = 0.05, .start = 4096, .least = 4, .most = 1e9};
}

TEST(SolveMonotone, FindsWhereARisingFunctionHasTheValue) {
  for (const double aim : {0.01, 0.05, 0.3, 0.6, 0.95}) {
    const Solution found = solve_monotone(share_of, request_for(aim));
    EXPECT_TRUE(found.found) << aim;
    EXPECT_NEAR(found.value, aim, 0.05 * aim);
    EXPECT_EQ(found.value, share_of(found.argument));
    EXPECT_LE(found.trials, 16) << aim;
  }
}

TEST(SolveMonotone, FindsWhereAFallingFunctionHasTheValue) {
  const Solution found =
      solve_monotone([](double bytes) { return 1 - share_of(bytes); }, request_for(0.2));
  EXPECT_TRUE(found.found);
  EXPECT_NEAR(found.value, 0.2, 0.01);
}

TEST(SolveMonotone, GoesDownFromAStartThatIsTooLarge) {
  SolveRequest request = request_for(0.1);
  request.start = 1e8;
  EXPECT_TRUE(solve_monotone(share_of, request).found);
}

TEST(SolveMonotone, TakesOneTrialWhereTheStartWillDo) {
  SolveRequest request = request_for(0.5);
  request.start = 1e6;
  const Solution found = solve_monotone(share_of, request);
  EXPECT_TRUE(found.found);
  EXPECT_EQ(found.trials, 1);
}

TEST(SolveMonotone, SaysHowCloseItCameWhereTheValueIsOutOfReach) {
  SolveRequest request = request_for(0.9);
  request.most = 1e6;
  const Solution found = solve_monotone(share_of, request);
  EXPECT_FALSE(found.found);
  EXPECT_EQ(found.argument, 1e6);
  EXPECT_EQ(found.value, 0.5);
}

TEST(SolveMonotone, StopsWhenItsTrialsAreUsedUp) {
  SolveRequest request = request_for(0.3);
  request.tolerance = 0;
  EXPECT_EQ(solve_monotone([](double x) { return x < 77777 ? 0.1 : 0.9; }, request).trials, 24);
}

TEST(SolveMonotone, CopesWithNoiseSmallerThanItsTolerance) {
  Random random(20261121);
  int found = 0;
  for (int run = 0; run < 200; ++run) {
    const auto noisy = [&](double bytes) {
      return share_of(bytes) * std::exp(0.01 * random.normal());
    };
    found += solve_monotone(noisy, request_for(0.3)).found ? 1 : 0;
  }
  EXPECT_GE(found, 198);
}

// A share stays at 0 until a host is slower than its device.
TEST(SolveMonotone, LooksBothWaysWhereTheStartTellsNoWay) {
  for (const double edge : {1e2, 1e6}) {
    const bool rises = edge > 4096;
    const Solution found = solve_monotone(
        [&](double size) { return std::max(0.0, rises ? 1 - edge / size : 1 - size / edge); },
        request_for(0.3));
    EXPECT_TRUE(found.found) << edge;
    EXPECT_LE(found.trials, 16) << edge;
  }
}

TEST(SolveMonotone, GoesNoFurtherWhereThereIsNoValue) {
  double largest = 0;
  const Solution found = solve_monotone(
      [&](double size) {
        largest = std::max(largest, size);
        return size > 20000 ? std::nan("") : 1 / size;
      },
      {.aim = 1, .tolerance = 0.05, .start = 4096, .least = 1, .most = 1e9});
  EXPECT_TRUE(found.found);
  EXPECT_LT(largest, 1e6);
}

TEST(SolveMonotone, EndsWhereAValueIsMissingBetweenTwo) {
  const Solution found = solve_monotone(
      [](double size) { return size > 100 && size < 10000 ? std::nan("") : share_of(size); },
      {.aim = 0.001, .tolerance = 0.01, .start = 50, .least = 4, .most = 1e9});
  EXPECT_FALSE(found.found);
  EXPECT_LT(found.trials, 24);
}

}  // namespace
}  // namespace stepgate
