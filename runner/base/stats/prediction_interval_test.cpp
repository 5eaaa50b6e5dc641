// SPDX-License-Identifier: MIT
// Tests the rule for stored runs against its promise: how often it is wrong at the margin, and how
// often it finds effects beyond it.
#include "base/stats/prediction_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

constexpr double alpha = 0.01;
constexpr double beta = 0.05;
constexpr double margin = 0.005;
constexpr int gates = 20'000;
// White noise of single steps, 0.4 %, leaves this deviation in the contrast of 200 steps with 200
// of an anchor. The deviation between runs comes on top.
const double within_run = 0.004 * std::sqrt(2.0 / 200);

// Makes each run a unit of its own.
std::vector<std::vector<double>> each_alone(const std::vector<double>& runs) {
  std::vector<std::vector<double>> units;
  for (const double run : runs) units.push_back({run});
  return units;
}

struct Rates {
  double shown_above = 0;
  double shown_below = 0;
};

// Simulates stored runs around 0 and a new run around theta, all with the same deviation.
Rates simulate(int earlier_runs, double between_runs, double theta, std::uint64_t seed) {
  const double deviation = std::hypot(between_runs, within_run);
  Random random(seed);
  int above = 0;
  int below = 0;
  for (int gate = 0; gate < gates; ++gate) {
    std::vector<double> earlier;
    for (int run = 0; run < earlier_runs; ++run) earlier.push_back(deviation * random.normal());
    const Prediction prediction = predict(theta + deviation * random.normal(), each_alone(earlier));
    above += shows_above(prediction, margin, alpha);
    below += shows_below(prediction, margin, beta);
  }
  return {.shown_above = above / static_cast<double>(gates),
          .shown_below = below / static_cast<double>(gates)};
}

double three_standard_errors(double rate) {
  return 3 * std::sqrt(rate * (1 - rate) / gates);
}

struct Cell {
  double between_runs;
  int earlier_runs;
  double power;  // of showing a slowdown of 1 %, simulated when the rule was designed
};

class StoredRuns : public testing::TestWithParam<Cell> {
 protected:
  static constexpr std::uint64_t seed = 20261121;
  StoredRuns() { RecordProperty("seed", std::to_string(seed)); }
};

TEST_P(StoredRuns, AreNotFalselyExceededAtTheMargin) {
  const Cell cell = GetParam();
  const Rates rates = simulate(cell.earlier_runs, cell.between_runs, margin, seed);
  EXPECT_LE(rates.shown_above, alpha + three_standard_errors(alpha)) << "seed " << seed;
  EXPECT_LE(rates.shown_below, beta + three_standard_errors(beta)) << "seed " << seed;
  // The rule is exact for normal runs: much rarer errors would mean lost power.
  EXPECT_GE(rates.shown_above, alpha - three_standard_errors(alpha)) << "seed " << seed;
  EXPECT_GE(rates.shown_below, beta - three_standard_errors(beta)) << "seed " << seed;
}

TEST_P(StoredRuns, ShowASlowdownOfOnePercentAsOftenAsTheDesignSays) {
  const Cell cell = GetParam();
  const Rates rates = simulate(cell.earlier_runs, cell.between_runs, 0.01, seed);
  EXPECT_NEAR(rates.shown_above, cell.power, cell.power > 0.3 ? 0.05 : 0.02) << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(Table, StoredRuns,
                         testing::Values(Cell{0.001, 5, 0.64}, Cell{0.001, 10, 0.90},
                                         Cell{0.001, 20, 0.95}, Cell{0.0025, 5, 0.14},
                                         Cell{0.0025, 10, 0.24}, Cell{0.0025, 20, 0.29},
                                         Cell{0.005, 5, 0.05}, Cell{0.005, 10, 0.06},
                                         Cell{0.005, 20, 0.08}, Cell{0.01, 5, 0.02},
                                         Cell{0.01, 10, 0.03}, Cell{0.01, 20, 0.03}));

TEST(PredictionInterval, PassesTheTrueDifferenceAsOftenAsItSays) {
  constexpr std::uint64_t seed = 7;
  Random random(seed);
  int held = 0;
  for (int gate = 0; gate < gates; ++gate) {
    std::vector<double> earlier;
    for (int run = 0; run < 6; ++run) earlier.push_back(random.normal());
    const PredictionInterval interval =
        interval_of(predict(0.5 + random.normal(), each_alone(earlier)), 0.05);
    held += interval.low <= 0.5 && 0.5 <= interval.high;
  }
  EXPECT_NEAR(held / static_cast<double>(gates), 0.95, three_standard_errors(0.05))
      << "seed " << seed;
}

TEST(PredictionInterval, ShowsTheSmallestChangeThatItNamesAsOftenAsItSays) {
  constexpr std::uint64_t seed = 11;
  Random random(seed);
  int shown = 0;
  for (int gate = 0; gate < gates; ++gate) {
    std::vector<double> earlier;
    for (int run = 0; run < 20; ++run) earlier.push_back(random.normal());
    const double theta = margin + smallest_shown(predict(0, each_alone(earlier)), alpha, 0.8);
    shown += shows_above(predict(theta + random.normal(), each_alone(earlier)), margin, alpha);
  }
  // The tolerance covers the estimated deviation and the approximation by a sum of two t quantiles.
  EXPECT_NEAR(shown / static_cast<double>(gates), 0.8, 0.03) << "seed " << seed;
}

TEST(PredictionInterval, UsesTheDeviationOfTheSampleAndOfTheNewRun) {
  const std::vector<double> earlier{1, 2, 3};
  const Prediction prediction = predict(5, each_alone(earlier));
  EXPECT_EQ(prediction.units, 3);
  EXPECT_DOUBLE_EQ(prediction.difference, 3);
  EXPECT_DOUBLE_EQ(prediction.deviation, 1);
  EXPECT_DOUBLE_EQ(prediction.between, 4.0 / 3);
  EXPECT_EQ(prediction.within, 0);
  // Quantiles of t with 2 degrees: 6.9646 at 1 %, 2.9200 at 5 %.
  EXPECT_FALSE(shows_above(prediction, 0, alpha));
  EXPECT_TRUE(shows_above(predict(10.1, each_alone(earlier)), 0, alpha));
  EXPECT_FALSE(shows_above(predict(10.0, each_alone(earlier)), 0, alpha));
  EXPECT_TRUE(shows_below(predict(-1.4, each_alone(earlier)), 0, beta));
  EXPECT_FALSE(shows_below(predict(-1.3, each_alone(earlier)), 0, beta));
}

TEST(PredictionInterval, AddsWhatTheMeanOfAUnitsRunsHides) {
  const std::vector<std::vector<double>> units{{0, 2}, {1, 3}, {2, 4}};
  const Prediction prediction = predict(5, units);
  EXPECT_EQ(prediction.units, 3);
  EXPECT_EQ(prediction.runs, 6);
  EXPECT_DOUBLE_EQ(prediction.difference, 3);
  EXPECT_DOUBLE_EQ(prediction.between, 4.0 / 3);
  EXPECT_DOUBLE_EQ(prediction.within, 1);  // 2 (1 - 1 / 2)
  EXPECT_DOUBLE_EQ(prediction.deviation, std::sqrt(2));
  // Quantiles of t at 1 % with 2 and 3 degrees: 6.9646 and 4.5407.
  const double reach = std::sqrt(6.9646 * 6.9646 * 4 / 3 + 4.5407 * 4.5407);
  EXPECT_TRUE(shows_above(predict(2 + reach + 0.01, units), 0, alpha));
  EXPECT_FALSE(shows_above(predict(2 + reach - 0.01, units), 0, alpha));
}

TEST(PredictionInterval, RefusesToSpeakFromOneRun) {
  const std::vector<std::vector<double>> one{{1, 2, 3}};
  EXPECT_DEATH((void)predict(1, one), "one unit of earlier runs");
}

// Units (devices or sessions) of several runs each. The new run belongs to none of them.
struct Pool {
  int units;
  int runs;
};

class Pools : public testing::TestWithParam<Pool> {
 protected:
  static constexpr std::uint64_t seed = 20261122;
  static constexpr double run_deviation = 0.002;

  struct Wrong {
    double failed = 0;
    double held = 0;
  };
  enum class Counted { units, runs };
  static Wrong at_the_margin(Pool pool, double unit_deviation, Counted counted) {
    Random random(seed);
    Wrong wrong;
    for (int gate = 0; gate < gates; ++gate) {
      std::vector<std::vector<double>> earlier;
      for (int unit = 0; unit < pool.units; ++unit) {
        const double centre = unit_deviation * random.normal();
        if (counted == Counted::units) earlier.emplace_back();
        for (int run = 0; run < pool.runs; ++run) {
          if (counted == Counted::runs) earlier.emplace_back();
          earlier.back().push_back(centre + run_deviation * random.normal());
        }
      }
      const double own = unit_deviation * random.normal() + run_deviation * random.normal();
      const Prediction prediction = predict(margin + own, earlier);
      wrong.failed += shows_above(prediction, margin, alpha) ? 1.0 / gates : 0;
      wrong.held += shows_below(prediction, margin, beta) ? 1.0 / gates : 0;
    }
    return wrong;
  }
};

TEST_P(Pools, AreWrongAtTheLimitNoMoreOftenThanTheySayHoweverFarUnitsDiffer) {
  STEPGATE_RATES_AS_RELEASED();
  for (const double unit_deviation : {0.0, 0.001, 0.002, 0.004, 0.008, 0.03}) {
    const Wrong wrong = at_the_margin(GetParam(), unit_deviation, Counted::units);
    std::printf("%d x %d runs, units differ by %.1f %%: failed %.2f, held %.2f %%\n",
                GetParam().units, GetParam().runs, 100 * unit_deviation, 100 * wrong.failed,
                100 * wrong.held);
    EXPECT_LE(wrong.failed, 0.013) << "seed " << seed << ", " << unit_deviation;
    EXPECT_LE(wrong.held, 0.056) << "seed " << seed << ", " << unit_deviation;
  }
}

TEST_P(Pools, WouldBeWrongMuchMoreOftenIfTheirRunsWereCounted) {
  STEPGATE_RATES_AS_RELEASED();
  const Wrong wrong = at_the_margin(GetParam(), 0.008, Counted::runs);
  std::printf("%d x %d runs, runs counted: failed %.2f, held %.2f %%\n", GetParam().units,
              GetParam().runs, 100 * wrong.failed, 100 * wrong.held);
  EXPECT_GE(wrong.failed, 0.02) << "seed " << seed;
  EXPECT_GE(wrong.held, 0.065) << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(Table, Pools, testing::Values(Pool{3, 5}, Pool{6, 5}, Pool{8, 3}));

TEST(UnpairedDifference, IsThatOfAnExampleByHand) {
  // Variances 2.5 and 10 of five values each: the squared error is 2.5, with 5.882 degrees, of
  // which the 97.5 % point is 2.4587.
  const std::vector<double> before{1, 2, 3, 4, 5};
  const std::vector<double> after{2, 4, 6, 8, 10};
  const UnpairedDifference found = unpaired_difference(before, after, 0.95);
  EXPECT_DOUBLE_EQ(found.mean, 3);
  EXPECT_NEAR((found.high - found.low) / 2, 2.4587 * std::sqrt(2.5), 2e-3);
  EXPECT_NEAR((found.high + found.low) / 2, 3, 1e-12);
}

TEST(UnpairedDifference, HasTheTrueDifferenceAsOftenAsItSays) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> narrow(0, 1), wide(0.5, 4);
  constexpr int trials = 4000;
  int covered = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> before(6), after(11);
    for (double& value : before) value = narrow(random);
    for (double& value : after) value = wide(random);
    const UnpairedDifference found = unpaired_difference(before, after, 0.95);
    covered += found.low <= 0.5 && 0.5 <= found.high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(covered) / trials, 0.95, 0.015);
}

}  // namespace
}  // namespace stepgate
