// SPDX-License-Identifier: MIT
// The rule for stored runs against its own promise: how often it is wrong at the margin, and how
// often it finds what lies beyond.
#include "stats/prediction_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/random.h"

namespace stepgate {
namespace {

constexpr double alpha = 0.01;
constexpr double beta = 0.05;
constexpr double margin = 0.005;
constexpr int gates = 20'000;
// What is left of the noise of single steps, white 0.4 %, in the contrast of 200 steps with 200 of
// an anchor; it comes on top of what differs from run to run.
const double within_run = 0.004 * std::sqrt(2.0 / 200);

struct Rates {
  double shown_above = 0;
  double shown_below = 0;
};

// Stored runs round 0 and a new one round theta, all with the same deviation between runs.
Rates simulate(int earlier_runs, double between_runs, double theta, std::uint64_t seed) {
  const double deviation = std::hypot(between_runs, within_run);
  Random random(seed);
  int above = 0;
  int below = 0;
  for (int gate = 0; gate < gates; ++gate) {
    std::vector<double> earlier;
    for (int run = 0; run < earlier_runs; ++run) earlier.push_back(deviation * random.normal());
    const Prediction prediction = predict(theta + deviation * random.normal(), earlier);
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
  double power;  // of showing a slowdown of 1 %,as simulated when the rule was designed
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
  // The rule is exact for normal runs: much rarer errors would mean that it wastes power.
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

TEST(PredictionInterval, HoldsTheTrueDifferenceAsOftenAsItSays) {
  constexpr std::uint64_t seed = 7;
  Random random(seed);
  int held = 0;
  for (int gate = 0; gate < gates; ++gate) {
    std::vector<double> earlier;
    for (int run = 0; run < 6; ++run) earlier.push_back(random.normal());
    const PredictionInterval interval = interval_of(predict(0.5 + random.normal(), earlier), 0.05);
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
    const double theta = margin + smallest_shown(predict(0, earlier), alpha, 0.8);
    shown += shows_above(predict(theta + random.normal(), earlier), margin, alpha);
  }
  // The deviation is itself estimated and the sum of two quantiles of t is an approximation.
  EXPECT_NEAR(shown / static_cast<double>(gates), 0.8, 0.03) << "seed " << seed;
}

TEST(PredictionInterval, UsesTheDeviationOfTheSampleAndOfTheNewRun) {
  const std::vector<double> earlier{1, 2, 3};
  const Prediction prediction = predict(5, earlier);
  EXPECT_EQ(prediction.earlier_runs, 3);
  EXPECT_DOUBLE_EQ(prediction.difference, 3);
  EXPECT_DOUBLE_EQ(prediction.deviation, 1);
  EXPECT_DOUBLE_EQ(prediction.scale, std::sqrt(4.0 / 3));
  // t of 2 degrees: 6.9646 at 1 %, 2.9200 at 5 %.
  EXPECT_FALSE(shows_above(prediction, 0, alpha));
  EXPECT_TRUE(shows_above(predict(10.1, earlier), 0, alpha));
  EXPECT_FALSE(shows_above(predict(10.0, earlier), 0, alpha));
  EXPECT_TRUE(shows_below(predict(-1.4, earlier), 0, beta));
  EXPECT_FALSE(shows_below(predict(-1.3, earlier), 0, beta));
}

TEST(PredictionInterval, RefusesToSpeakFromOneRun) {
  const std::vector<double> one{1};
  EXPECT_DEATH((void)predict(1, one), "one earlier run");
}

}  // namespace
}  // namespace stepgate
