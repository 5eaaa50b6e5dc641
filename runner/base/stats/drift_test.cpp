// SPDX-License-Identifier: MIT
// Tests the trend test and the change points against the figures in their header: false alarms of
// unchanged code, and the time until a drift is shown.
#include "base/stats/drift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

constexpr double yearly_error = 0.01;
constexpr std::uint64_t drift_seed = 20261121;
using RunNoise = std::function<double(Random&)>;

double normal_noise(Random& random) {
  return random.normal();
}

// Student's t distribution with 3 degrees of freedom: a few runs are outliers.
double heavy_noise(Random& random) {
  double squares = 0;
  for (int degree = 0; degree < 3; ++degree) squares += std::pow(random.normal(), 2);
  return random.normal() / std::sqrt(squares / 3);
}

std::vector<double> weekly(std::size_t runs, double runs_a_week = 1) {
  std::vector<double> weeks;
  for (std::size_t run = 0; run < runs; ++run)
    weeks.push_back(static_cast<double>(run) / runs_a_week);
  return weeks;
}

// Makes the values of a year, one for each run.
using YearOf = std::function<std::vector<double>(std::span<const double> weeks, Random&)>;

YearOf independent(const RunNoise& noise, double deviation) {
  return [=](std::span<const double> weeks, Random& random) {
    std::vector<double> values;
    for (std::size_t run = 0; run < weeks.size(); ++run)
      values.push_back(deviation * noise(random));
    return values;
  };
}

// A series whose neighbouring runs have this correlation.
YearOf alike(double correlation, double deviation) {
  return [=](std::span<const double> weeks, Random& random) {
    std::vector<double> values{deviation * random.normal()};
    const double anew = deviation * std::sqrt(1 - correlation * correlation);
    while (values.size() < weeks.size())
      values.push_back(correlation * values.back() + anew * random.normal());
    return values;
  };
}

// A sine of one year, with amplitude `size` and a random phase.
YearOf seasonal(double size, double deviation) {
  return [=](std::span<const double> weeks, Random& random) {
    const double phase = 2 * std::numbers::pi * random.uniform();
    std::vector<double> values;
    for (const double week : weeks) {
      values.push_back(size * std::sin(2 * std::numbers::pi * week / 52 + phase) +
                       deviation * random.normal());
    }
    return values;
  };
}

// Shares of years with a false alarm, in percent.
struct FalseAlarms {
  double rise = 0;
  double drift = 0;
};

FalseAlarms false_alarms(const YearOf& year_of, int years, double runs_a_week = 1) {
  const std::vector<double> weeks = weekly(static_cast<std::size_t>(52 * runs_a_week), runs_a_week);
  Random random(drift_seed);
  FalseAlarms alarms;
  for (int year = 0; year < years; ++year) {
    const auto drift = drift_of(weeks, year_of(weeks, random), yearly_error);
    alarms.rise += drift->rise.has_value() * 100.0 / years;
    alarms.drift += drift->alarm.has_value() * 100.0 / years;
  }
  return alarms;
}

struct DriftCase {
  double deviation = 0.0025;  // of one run
  std::size_t flat_runs = 1;  // before the first slower run
  double runs_a_week = 1;
  double shared_by = 1;  // number of series that share the error
  double drift = 0.003;  // per week
};

// Median number of runs until rise and drift are shown, over many series of a year.
struct Shown {
  std::size_t rise = 0;
  std::size_t drift = 0;
};

Shown median_run(const DriftCase& given, int series = 400) {
  const std::vector<double> weeks =
      weekly(static_cast<std::size_t>(52 * given.runs_a_week), given.runs_a_week);
  const double begins = weeks[given.flat_runs - 1];
  Random random(drift_seed);
  std::vector<std::size_t> rises;
  std::vector<std::size_t> drifts;
  for (int one = 0; one < series; ++one) {
    std::vector<double> values;
    for (const double week : weeks) {
      const double slower = given.drift * std::max(0.0, week - begins);
      values.push_back(slower + given.deviation * random.normal());
    }
    const auto drift = drift_of(weeks, values, yearly_error / given.shared_by);
    rises.push_back(drift->rise.value_or(weeks.size()) + 1);
    drifts.push_back(drift->alarm.value_or(weeks.size()) + 1);
  }
  const auto median = [](std::vector<std::size_t>& of) {
    std::ranges::nth_element(of, of.begin() + std::ssize(of) / 2);
    return of[of.size() / 2];
  };
  return {median(rises), median(drifts)};
}

TEST(WeeklySlope, IsThatOfAStraightLineWhateverTheDates) {
  const std::vector<double> weeks{0, 1, 1.5, 4, 9};
  std::vector<double> values;
  for (const double week : weeks) values.push_back(2 + 0.5 * week);
  const auto line = weekly_slope(weeks, values);
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->slope, 0.5, 1e-12);
  EXPECT_NEAR(line->middle, 2 + 0.5 * line->middle_week, 1e-12);
  EXPECT_GT(line->standard_error, 0) << "no series is steadier than what is stored";
  EXPECT_FALSE(weekly_slope(std::vector<double>{1, 1, 1}, std::vector<double>{1, 2, 3}));
  EXPECT_FALSE(weekly_slope(std::vector<double>{1, 2}, std::vector<double>{1, 2}));
}

// Expected values from scipy.stats.linregress and scipy.stats.t.
TEST(WeeklySlope, HasTheIntervalOfATextbook) {
  const auto line = weekly_slope(weekly(5), std::vector<double>{1, 1.4, 1.3, 1.9, 2.0});
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->slope, 0.25, 1e-12);
  EXPECT_NEAR(line->standard_error, 0.0525991, 1e-7);
  const SlopeInterval interval = interval_of(*line, 0.05);
  EXPECT_NEAR(interval.low, 0.25 - 0.1673939, 1e-6);
  EXPECT_NEAR(interval.high, 0.25 + 0.1673939, 1e-6);
  EXPECT_NEAR(half_band_at(*line, 4, 0.05), 0.4100295, 1e-6);
  EXPECT_LT(half_band_at(*line, 2, 0.05), half_band_at(*line, 4, 0.05));
}

TEST(WeeklySlope, LiesWithinItsIntervalAsOftenAsItSays) {
  Random random(drift_seed);
  constexpr int series = 4000;
  int within = 0;
  for (int one = 0; one < series; ++one) {
    std::vector<double> values;
    for (const double week : weekly(8)) values.push_back(0.003 * week + 0.002 * random.normal());
    const SlopeInterval interval = interval_of(*weekly_slope(weekly(8), values), 0.05);
    within += interval.low <= 0.003 && 0.003 <= interval.high;
  }
  EXPECT_NEAR(within / double{series}, 0.95, 0.012);
}

TEST(Drift, SpendsNoMoreThanItsErrorInAnyYear) {
  for (double from = 0; from < 200; from += 3.7) {
    const double spent = spent_by(from + 52, yearly_error) - spent_by(from, yearly_error);
    EXPECT_LE(spent, yearly_error * (1 + 1e-9)) << from;
  }
  EXPECT_DOUBLE_EQ(spent_by(52, yearly_error), yearly_error);
}

TEST(Drift, IsCalledInFewYearsOfUnchangedCodeHoweverItsRunsDiffer) {
  STEPGATE_RATES_AS_RELEASED();
  constexpr int years = 2000;
  struct Kind {
    const char* name;
    YearOf year_of;
    double most_drifts;
  };
  const Kind kinds[] = {{"0.5 %, normal", independent(normal_noise, 0.005), 0.3},
                        {"0.5 %, t of 3 degrees", independent(heavy_noise, 0.005), 0.3},
                        {"0.5 %, AR(.3)", alike(0.3, 0.005), 0.3},
                        {"0.5 %, AR(.6)", alike(0.6, 0.005), 0.5},
                        {"0.5 %, AR(.8)", alike(0.8, 0.005), 1},
                        {"0.5 %, season", seasonal(0.003, 0.005), 0.3},
                        {"1 %, AR(.8)", alike(0.8, 0.01), 2.5},
                        {"0.25 %, season", seasonal(0.003, 0.0025), 0.3}};
  for (const auto& [name, year_of, most_drifts] : kinds) {
    const FalseAlarms alarms = false_alarms(year_of, years);
    std::printf("runs differ by %s: rises %.2f %% of years, drifts %.2f %%\n", name, alarms.rise,
                alarms.drift);
    EXPECT_LE(alarms.drift, most_drifts) << name;
    EXPECT_LE(alarms.drift, alarms.rise) << name;
  }
  const FalseAlarms often = false_alarms(independent(normal_noise, 0.005), years, 3);
  const FalseAlarms of_normal = false_alarms(independent(normal_noise, 0.005), years);
  EXPECT_LE(often.rise, 1.2) << "1 %, and what 2,000 years leave open";
  EXPECT_LE(of_normal.rise, 1.2);
  EXPECT_GE(of_normal.rise, 0.3) << "much fewer would be a waste of power";
}

TEST(Drift, OfThreeTenthsOfAPercentAWeekIsFound) {
  STEPGATE_RATES_AS_RELEASED();
  std::printf(
      "drift of 0.3 %% a week: median run of drift and rise; weeks since five, 30 flat runs\n");
  for (const double deviation : {0.001, 0.0025, 0.005, 0.01}) {
    const Shown first = median_run({.deviation = deviation});
    const Shown five = median_run({.deviation = deviation, .flat_runs = 5});
    const Shown thirty = median_run({.deviation = deviation, .flat_runs = 30});
    std::printf("runs differ by %.2f %%: run %zu, %zu; weeks %zu, %zu; %zu, %zu\n", 100 * deviation,
                first.drift, first.rise, five.drift - 5, five.rise - 5, thirty.drift - 30,
                thirty.rise - 30);
  }
  EXPECT_LE(median_run({}).rise, 7U);
  EXPECT_LE(median_run({}).drift, 12U);
  EXPECT_LE(median_run({.flat_runs = 5}).drift - 5, 10U);
  EXPECT_LE(median_run({.flat_runs = 30}).drift - 30, 12U);
  EXPECT_LE(median_run({.deviation = 0.005, .flat_runs = 5}).drift - 5, 13U);
}

TEST(Drift, IsFoundSoonerWithMoreRunsAWeekAndLaterWhereManySeriesShareTheError) {
  STEPGATE_RATES_AS_RELEASED();
  const Shown thrice = median_run({.deviation = 0.005, .flat_runs = 5, .runs_a_week = 3});
  const double weeks = (static_cast<double>(thrice.drift) - 5) / 3;
  std::printf("runs differ by 0.5 %%, three a week: %.1f weeks after five flat runs\n", weeks);
  EXPECT_LE(weeks, 10);
  for (const double shared_by : {10.0, 30.0, 100.0}) {
    std::printf("runs differ by 0.25 %%, %g series: week %zu after five flat runs\n", shared_by,
                median_run({.flat_runs = 5, .shared_by = shared_by}).drift - 5);
  }
  EXPECT_LE(median_run({.flat_runs = 5, .shared_by = 10}).drift - 5, 12U);
}

TEST(Drift, IsAStepThatStays) {
  Random random(drift_seed);
  std::vector<double> values;
  for (int run = 0; run < 30; ++run)
    values.push_back((run < 10 ? 0 : 0.02) + 0.0025 * random.normal());
  const auto drift = drift_of(weekly(30), values, yearly_error);
  ASSERT_TRUE(drift->alarm);
  EXPECT_LE(*drift->alarm, 25U);
}

TEST(Drift, IsOneSidedAndStays) {
  std::vector<double> faster;
  std::vector<double> slower_once;
  Random random(drift_seed);
  for (int week = 0; week < 30; ++week) {
    const double noise = 0.001 * random.normal();
    faster.push_back(noise - 0.003 * week);
    slower_once.push_back(noise + 0.003 * std::max(0, 14 - std::abs(week - 14)));
  }
  EXPECT_FALSE(drift_of(weekly(30), faster, yearly_error)->rise);
  const auto drift = drift_of(weekly(30), slower_once, yearly_error);
  ASSERT_TRUE(drift->alarm) << "an alarm that went away is an alarm";
  EXPECT_LT(*drift->alarm, 14U);
}

// The machine's clock was wrong once, or the machine was idle for years.
TEST(Drift, SpendsAfterAnyPauseNoMoreThanAYearsError) {
  const std::vector<double> values{0, 0.01, 0.005, 0.008, 0.002, 0.006, 0.004};
  for (const double pause : {60.0, 5000.0, 50'000.0, 500'000.0}) {
    std::vector<double> weeks = weekly(7);
    weeks.back() += pause;
    const auto drift = drift_of(weeks, values, yearly_error);
    ASSERT_TRUE(drift) << pause;
    EXPECT_FALSE(drift->rise) << pause;
  }
}

TEST(Drift, IsNotLookedForInTooFewRunsOrTooLittleTime) {
  const std::vector<double> values{0, 1, 2, 3, 4, 5};
  EXPECT_FALSE(drift_of(weekly(5), std::span(values).first(5), yearly_error));
  EXPECT_FALSE(drift_of(weekly(6, 7), values, yearly_error)) << "six days";
  EXPECT_TRUE(drift_of(weekly(6), values, yearly_error)->rise);
  const std::vector<double> same(6, 1.25);
  EXPECT_FALSE(drift_of(weekly(6), same, yearly_error)->rise);
}

std::vector<double> with_step(std::size_t runs, std::size_t at, double step, double deviation,
                              const RunNoise& noise, Random& random) {
  std::vector<double> values;
  for (std::size_t run = 0; run < runs; ++run)
    values.push_back((run < at ? 0 : step) + deviation * noise(random));
  return values;
}

TEST(ChangePoints, FindOneStepWithinOneRun) {
  Random random(drift_seed);
  constexpr int series = 200;
  int found = 0;
  for (int one = 0; one < series; ++one) {
    const auto changes = change_points(with_step(20, 10, 0.02, 0.003, normal_noise, random));
    found += changes.size() == 1 && changes.front() >= 9 && changes.front() <= 11;
  }
  EXPECT_GE(found, 198);
}

TEST(ChangePoints, FindAStepFourRunsAfterIt) {
  Random random(drift_seed);
  int found = 0;
  for (int one = 0; one < 200; ++one) {
    const auto changes = change_points(with_step(14, 10, 0.02, 0.003, normal_noise, random));
    found += changes.size() == 1 && changes.front() >= 9 && changes.front() <= 11;
  }
  std::printf("a step of 2 %% in noise of 0.3 %%, four runs later: %.1f %%\n", found / 2.0);
  EXPECT_GE(found, 160);
}

TEST(ChangePoints, FindThereAndBackAgain) {
  Random random(drift_seed);
  std::vector<double> values = with_step(30, 10, 0.02, 0.002, normal_noise, random);
  for (std::size_t run = 20; run < 30; ++run) values[run] -= 0.02;
  EXPECT_EQ(change_points(values), (std::vector<std::size_t>{10, 20}));
}

TEST(ChangePoints, FindNoneInNoise) {
  constexpr int series = 1000;
  for (const auto& [name, noise] :
       {std::pair<const char*, RunNoise>{"normal", normal_noise},
        std::pair<const char*, RunNoise>{"t of 3 degrees", heavy_noise}}) {
    Random random(drift_seed);
    int found = 0;
    for (int one = 0; one < series; ++one)
      found += !change_points(with_step(20, 0, 0, 1, noise, random)).empty();
    std::printf("change points where nothing changes, %s: %.1f %%\n", name, 100.0 * found / series);
    EXPECT_LE(found, series / 20) << name;
  }
  EXPECT_TRUE(change_points(std::vector<double>(40, 0.5)).empty());
  EXPECT_TRUE(change_points(std::vector<double>{1, 2, 3}).empty());
}

}  // namespace
}  // namespace stepgate
