// SPDX-License-Identifier: MIT
// Tests that the effects of places are found, and that removing them favours neither side.
#include "base/stats/place_effects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/stats/e_process.h"
#include "base/stats/moments.h"

namespace stepgate {
namespace {

std::pair<int, int> two_places(int places, Random& random) {
  const auto left = static_cast<int>(random.below(static_cast<std::uint64_t>(places)));
  const auto step = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(places - 1)));
  return {left, (left + step) % places};
}

TEST(PlaceEffects, PredictNothingAtFirst) {
  PlaceEffects effects(2);
  EXPECT_EQ(effects.predict(0, 1), 0);
  effects.add(0.5, 0, 1);
  EXPECT_EQ(effects.predict(0, 1), 0);
}

TEST(PlaceEffects, FindWhatSticksToEachOfThreePlaces) {
  PlaceEffects effects(3);
  const std::array<double, 3> truth{0.004, -0.001, -0.003};
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const auto [left, right] = two_places(3, random);
    effects.add(0.02 + truth.at(static_cast<std::size_t>(left)) -
                    truth.at(static_cast<std::size_t>(right)) + 0.001 * random.normal(),
                left, right);
  }
  EXPECT_NEAR(effects.predict(0, 2), 0.007, 0.0003);
  EXPECT_NEAR(effects.predict(1, 2), 0.002, 0.0003);
  EXPECT_EQ(effects.predict(2, 1), -effects.predict(1, 2));
}

TEST(PlaceEffects, AreNotMovedByOneWildRound) {
  PlaceEffects effects(2);
  for (int round = 0; round < 20; ++round)
    effects.add(round % 2 == 0 ? 0.002 : -0.002, round % 2, 1 - round % 2);
  const double before = effects.predict(0, 1);
  effects.add(5, 1, 0);
  EXPECT_NEAR(effects.predict(0, 1), before, 0.0015);
}

// With two places of opposite effect the normal equations reduce to two unknowns: half their
// difference and the intercept. The rounds go beyond those that are summed one by one.
TEST(PlaceEffects, AreTheSolutionOfTheNormalEquationsForFewRoundsAndMany) {
  PlaceEffects effects(2);
  RobustScale scale;
  Random random(4);
  std::vector<std::pair<double, double>> seen;  // contrast, and 1 or -1 for its left side's place
  for (int round = 1; round <= 1500; ++round) {
    const int left = static_cast<int>(random.below(2));
    const double contrast =
        0.01 + (left == 0 ? 0.002 : -0.002) + (round % 7 == 0 ? 0.2 : 0.003) * random.normal();
    effects.add(contrast, left, 1 - left);
    scale.add(contrast);
    seen.emplace_back(contrast, left == 0 ? 1 : -1);
    if (round % 50 != 0) continue;
    const double reach = 3 * scale.value();
    double signs = 0;
    double values = 0;
    double signed_values = 0;
    for (const auto& [value, sign] : seen) {
      const double bounded = std::clamp(value - scale.centre(), -reach, reach);
      signs += sign;
      values += bounded;
      signed_values += sign * bounded;
    }
    const double rounds = round;
    const double half =
        (signed_values * rounds - values * signs) / ((2 * rounds + 2) * rounds - 2 * signs * signs);
    ASSERT_NEAR(effects.predict(0, 1), 2 * half, 1e-13) << round;
  }
}

// Contrasts with theta at the margin and place effects of 0.5 %. Bets on contrasts less their
// prediction keep the level, and these contrasts scatter hardly more than without place effects.
TEST(PlaceEffects, LeaveAContrastThatKeepsTheLevelAndHardlyScattersMore) {
  constexpr int gates = 4000;
  constexpr int rounds = 40;
  constexpr double level = 0.05;
  constexpr double noise = 0.004;
  constexpr double of_places = 0.005;
  int crossed = 0;
  std::vector<double> left_over;
  for (int gate = 0; gate < gates; ++gate) {
    Random random(static_cast<std::uint64_t>(gate));
    const double place = of_places * random.normal();
    PlaceEffects effects(2);
    EProcess process(Direction::above, 0);
    RobustScale scale;
    bool above = false;
    for (int round = 0; round < rounds; ++round) {
      const int left = static_cast<int>(random.below(2));
      const double contrast = (left == 0 ? place : -place) + noise * random.normal();
      const double rest = contrast - effects.predict(left, 1 - left);
      process.bet(rest, scale.value());
      above = above || process.value() >= 1 / level;
      effects.add(contrast, left, 1 - left);
      scale.add(rest);
      if (round >= rounds / 2) left_over.push_back(rest);
    }
    crossed += above;
  }
  EXPECT_LE(crossed, gates * (level + 3 * std::sqrt(level * (1 - level) / gates)));
  EXPECT_LT(std::sqrt(moments_of(left_over).variance), 1.15 * noise);
}

}  // namespace
}  // namespace stepgate
