// SPDX-License-Identifier: MIT
// Tests the guarantees of the e-process under noise of every kind, its power, and factors against
// values worked out by hand.
#include "base/stats/e_process.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/random.h"
#include "base/stats/quantile.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

// The round at which the evidence first reaches 1 / level, if any.
std::optional<std::int64_t> crossing_round(std::span<const double> contrasts, double margin,
                                           Direction direction, double level) {
  const std::vector<double> scales = predictable_scales(contrasts);
  EProcess process(direction, margin);
  for (std::size_t round = 0; round < contrasts.size(); ++round) {
    process.bet(contrasts[round], scales[round]);
    if (process.value() >= 1 / level) return static_cast<std::int64_t>(round) + 1;
  }
  return std::nullopt;
}

// Fills a path with contrasts.
using Noise = std::function<void(Random&, std::span<double>)>;

void cauchy(Random& random, std::span<double> path) {
  for (double& contrast : path) {
    contrast = 0.01 * std::tan(std::numbers::pi * (random.uniform() - 0.5));
  }
}

// Contrasts of segments with strongly correlated noise, in an order ABBA or BAAB that a coin
// decides.
void autoregressive(Random& random, std::span<double> path) {
  double state = 0;
  const auto next = [&] { return state = 0.97 * state + 0.01 * random.normal(); };
  for (double& contrast : path) {
    const std::array segments{next(), next(), next(), next()};
    const double outer = 0.5 * (segments[0] + segments[3]);
    const double inner = 0.5 * (segments[1] + segments[2]);
    contrast = random.below(2) == 0 ? outer - inner : inner - outer;
  }
}

// A curved drift that the mirrored order does not cancel; only the random order makes it symmetric.
void drift(Random& random, std::span<double> path) {
  double time = 0;
  const auto next = [&] {
    time += 1;
    return 0.0001 * time * time;
  };
  for (double& contrast : path) {
    const std::array segments{next(), next(), next(), next()};
    const double curve = 0.5 * (segments[0] + segments[3] - segments[1] - segments[2]);
    contrast = (random.below(2) == 0 ? curve : -curve) + 1e-5 * random.normal();
  }
}

class Validity : public testing::TestWithParam<std::pair<const char*, Noise>> {};

TEST_P(Validity, CrossesAtTheMarginNoMoreOftenThanTheLevel) {
  STEPGATE_RATES_AS_RELEASED();
  constexpr std::uint64_t seed = 20260101;
  constexpr int paths = 100'000;
  constexpr double level = 0.01;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  std::array<double, 24> path{};
  int crossings = 0;
  for (int index = 0; index < paths; ++index) {
    GetParam().second(random, path);
    if (crossing_round(path, 0, Direction::above, level)) ++crossings;
  }
  const boost::math::binomial_distribution<> at_level(paths, level);
  EXPECT_LE(crossings, boost::math::quantile(at_level, 0.999));
  EXPECT_GT(crossings, 0) << "a test that never rejects has no power";
}

INSTANTIATE_TEST_SUITE_P(Noise, Validity,
                         testing::Values(std::pair{"Cauchy", Noise(cauchy)},
                                         std::pair{"Autoregressive", Noise(autoregressive)},
                                         std::pair{"Drift", Noise(drift)}),
                         [](const auto& noise) { return std::string(noise.param.first); });

TEST(EProcess, FirstFactorsAreThoseWorkedOutByHand) {
  EProcess process(Direction::above, 0.01);
  EXPECT_DOUBLE_EQ(process.value(), 1);
  process.bet(0.03, 0.02);  // one scale above the margin
  const double expected = 1 + 0.95 * (0.1 * std::tanh(0.25) + 0.2 * std::tanh(0.5) +
                                      0.3 * std::tanh(1.0) + 0.4 * std::tanh(2.0));
  EXPECT_NEAR(process.value(), expected, 1e-12);
  EXPECT_NEAR(process.value(), 1.69446, 1e-5);
  process.bet(0.01, 0.02);  // at the margin: no evidence either way
  EXPECT_NEAR(process.value(), expected, 1e-12);
}

TEST(EProcess, OneWildContrastNeitherDecidesNorEndsTheBet) {
  EProcess lucky(Direction::above, 0);
  lucky.bet(1e6, 0.001);
  EXPECT_NEAR(lucky.value(), 1.95, 1e-9);
  EProcess unlucky(Direction::above, 0);
  unlucky.bet(-1e6, 0.001);
  EXPECT_NEAR(unlucky.value(), 0.05, 1e-9);
}

TEST(EProcess, SwappingTheLabelsSwapsTheDirections) {
  constexpr std::uint64_t seed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  std::vector<double> contrasts(30);
  for (double& contrast : contrasts) contrast = 0.002 + 0.003 * random.normal();
  std::vector<double> negated = contrasts;
  for (double& contrast : negated) contrast = -contrast;
  const std::vector<double> scales = predictable_scales(contrasts);
  const std::vector<double> negated_scales = predictable_scales(negated);
  EProcess above(Direction::above, 0.001);
  EProcess below(Direction::below, -0.001);
  for (std::size_t round = 0; round < contrasts.size(); ++round) {
    above.bet(contrasts[round], scales[round]);
    below.bet(negated[round], negated_scales[round]);
  }
  EXPECT_NEAR(above.log_value(), below.log_value(), 1e-9);
}

TEST(EProcess, StaysFiniteOverThousandsOfRounds) {
  EProcess process(Direction::above, 0);
  for (int round = 0; round < 5000; ++round) process.bet(1, 0.001);
  EXPECT_NEAR(process.log_value(), 5000 * std::log(1.95), 1e-6);
  EXPECT_TRUE(std::isfinite(process.value()));
}

TEST(EProcess, DecidesALargeEffectInTheFewestRounds) {
  EXPECT_EQ(fewest_rounds(0.01), 7);
  EXPECT_EQ(fewest_rounds(0.05), 5);
  const std::vector<double> contrasts(10, 0.3);
  EXPECT_EQ(crossing_round(contrasts, 0, Direction::above, 0.01), 7);
  EXPECT_EQ(crossing_round(contrasts, 0, Direction::above, 0.05), 5);
}

// Low noise with outliers on either side, as in launch-bound steps. With the plain variance as
// scale, 12 rounds would not decide.
TEST(EProcess, DecidesANinePercentEffectAmongOutliersWithinTwelveRounds) {
  constexpr std::uint64_t seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  std::vector<double> rounds;
  for (int gate = 0; gate < 500; ++gate) {
    std::vector<double> contrasts(40);
    for (double& contrast : contrasts) {
      contrast = 0.09 + 0.005 * random.normal();
      if (random.uniform() < 0.15) contrast += 0.2 * (random.uniform() - 0.5);
    }
    rounds.push_back(
        static_cast<double>(crossing_round(contrasts, 0, Direction::above, 0.01).value_or(1000)));
  }
  EXPECT_LE(quantile(rounds, 0.95), 12);
}

TEST(EProcess, PowerAtOneScaleIsNearTheExpectedNumberOfRounds) {
  constexpr std::uint64_t seed = 5;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (const double signal_to_noise : {0.5, 1.0, 3.0}) {
    std::vector<double> rounds;
    for (int gate = 0; gate < 300; ++gate) {
      std::vector<double> contrasts(300);
      for (double& contrast : contrasts) {
        contrast = 0.005 * (signal_to_noise + random.normal());
      }
      rounds.push_back(
          static_cast<double>(crossing_round(contrasts, 0, Direction::above, 0.01).value_or(1000)));
    }
    const double expected = expected_rounds(signal_to_noise, 0.01).value();
    EXPECT_GT(quantile(rounds, 0.5), 0.5 * expected) << signal_to_noise;
    EXPECT_LT(quantile(rounds, 0.5), 2.0 * expected) << signal_to_noise;
  }
}

TEST(EProcess, ExpectsNoEndWithoutAnEffect) {
  EXPECT_FALSE(expected_rounds(0, 0.01).has_value());
  EXPECT_EQ(expected_rounds(100, 0.01), 7);
}

TEST(RobustScale, IgnoresAnOutlierAndAShift) {
  RobustScale quiet;
  RobustScale shifted;
  for (const double contrast : {0.001, -0.001, 0.002, -0.002, 0.0, 0.001, -0.001, 0.0, 0.3}) {
    quiet.add(contrast);
    shifted.add(contrast + 0.09);
  }
  EXPECT_LT(quiet.value(), 0.003);
  EXPECT_NEAR(quiet.value(), shifted.value(), 1e-12);
}

TEST(ConfidenceSequence, CoversAtEveryRoundAtOnce) {
  STEPGATE_RATES_AS_RELEASED();
  constexpr std::uint64_t seed = 3;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  constexpr int paths = 400;
  int misses = 0;
  for (int index = 0; index < paths; ++index) {
    std::vector<double> contrasts(25);
    for (double& contrast : contrasts) contrast = 0.02 + 0.01 * random.normal();
    bool covered = true;
    for (std::size_t rounds = 1; rounds <= contrasts.size(); ++rounds) {
      const auto interval = confidence_sequence(std::span(contrasts).first(rounds), 0.1);
      covered = covered && interval.low.value_or(-1) <= 0.02 && interval.high.value_or(1) >= 0.02;
    }
    if (!covered) ++misses;
  }
  const boost::math::binomial_distribution<> at_level(paths, 0.1);
  EXPECT_LE(misses, boost::math::quantile(at_level, 0.999));
}

TEST(ConfidenceSequence, HasNoEndsBeforeAnythingCanBeRejected) {
  const std::vector<double> contrasts(5, 0.02);
  const ConfidenceSequence early = confidence_sequence(contrasts, 0.05);
  EXPECT_NEAR(early.centre, 0.02, 1e-9);
  EXPECT_FALSE(early.low || early.high);
}

// A margin is outside the interval exactly when one of the two tests rejects it at half the level.
TEST(ConfidenceSequence, AgreesWithTheTestItInverts) {
  const std::vector<double> contrasts{0.021, 0.018, 0.025, 0.02, 0.015, 0.022, 0.019, 0.02, 0.023};
  const ConfidenceSequence interval = confidence_sequence(contrasts, 0.05);
  ASSERT_TRUE(interval.low && interval.high);
  EXPECT_LT(*interval.low, interval.centre);
  EXPECT_GT(*interval.high, interval.centre);
  const std::vector<double> scales = predictable_scales(contrasts);
  for (const double margin : {*interval.low - 1e-6, *interval.low + 1e-6}) {
    EProcess process(Direction::above, margin);
    for (std::size_t round = 0; round < contrasts.size(); ++round) {
      process.bet(contrasts[round], scales[round]);
    }
    EXPECT_EQ(process.value() >= 40, margin < *interval.low);
  }
}

}  // namespace
}  // namespace stepgate
