// SPDX-License-Identifier: MIT
// Whether a series that should stay where it is creeps upwards, and where it jumps. Of runs over
// weeks in every use; what the numbers mean is for others. Pure arithmetic.
//
// Two tests at every look. The first assumes that values differ by independent normal noise of one
// unknown deviation, and shows a rise: early, but neighbours that are alike, as where a neighbour
// on the machine stays for a month, and seasons rise as well. The second shows a drift: a rise
// beyond `most_of_a_season`, with a standard error that allows for the correlation of neighbours.
//
// Simulated (drift_test prints it), one run a week, all of the error on one series. Years with an
// alarm, in %, where nothing drifts; runs differ by 0.5 %, and AR(r) is a correlation of r:
//
//            normal   t of 3   AR(.3)   AR(.6)   AR(.8)   a season of 0.3 % either way
//   rise        0.8      0.7      4        19       38    9
//   drift         0        0      0         0.1      0.5  0
//
// Where runs differ by 1 % AR(.8) makes drifts in 1.9 %, by 0.25 % a season rises in 40 % and
// drifts in none. The median of when a drift of 0.3 % a week is shown, and a rise:
//
//   runs differ by                            0.1    0.25    0.5     1 %
//   it begins with the first run: run      10, 6   12, 6  15, 10  20, 15
//   it begins after five runs: week         9, 5   10, 6   12, 8  16, 12
//   it begins after 30 runs: week          12, 6   12, 7   13, 9  16, 12
//
// With three runs a week, which differ by 0.5 %, and five before it begins: 7.7 weeks. Where 10, 30
// or 100 series share the error and runs differ by 0.25 %: week 11 or 12 after five runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stepgate {

// The least-squares line through the points (week, value).
struct WeeklySlope {
  double slope = 0;           // per week
  double standard_error = 0;  // standard error of the slope, from the residuals
  double middle_week = 0;     // mean of the weeks
  double middle = 0;          // mean of the values: the height of the line at middle_week
  double middle_error = 0;    // standard error of that height
  std::int64_t values = 0;
  std::int64_t degrees() const { return values - 2; }
};

// Both spans have the same length. nullopt for fewer than three values, or if all weeks are equal.
std::optional<WeeklySlope> weekly_slope(std::span<const double> weeks,
                                        std::span<const double> values);

// A confidence interval: the true slope lies outside in the share `error` of all series (Student's
// t).
struct SlopeInterval {
  double low = 0;
  double high = 0;
};
SlopeInterval interval_of(const WeeklySlope&, double error);

// Half the width of the pointwise confidence band of the line at that week.
double half_band_at(const WeeklySlope&, double week, double error);

// With fewer values, or within less time, drift is not tested.
constexpr std::size_t fewest_values_of_drift = 6;
constexpr double fewest_weeks_of_drift = 1;

// The part of `yearly_error` that all tests up to that week may have spent together (Lan and
// DeMets, Discrete sequential boundaries for clinical trials, 1983). In the first year it is
// yearly_error * sqrt(week / 52), so that early drift is shown early. Each later week adds 1/52 of
// yearly_error. So the sum over any 52 weeks is at most yearly_error, however many runs they have.
double spent_by(double week, double yearly_error);

// The most by which a season may change the logarithm of a value, from lowest to highest: 0.3 %
// either way.
constexpr double most_of_a_season = 0.006;

// `rise` and `alarm` are the indices of the values at which each was first shown. Later values do
// not withdraw an alarm.
struct Drift {
  WeeklySlope now;                   // the line through all values
  std::optional<std::size_t> rise;   // an upward slope, if values are independent
  std::optional<std::size_t> alarm;  // a slope beyond a season's and correlated noise
};

// Tests the line through the first 6, 7, ... values, each time with Student's t at the level that
// spent_by allows since the last test. By Bonferroni's inequality a series without slope is called
// drifting in at most the share `yearly_error` of years. Values are logarithms; `weeks` count from
// the first value and do not decrease. nullopt where there are too few values, or too little time,
// for a test.
std::optional<Drift> drift_of(std::span<const double> weeks, std::span<const double> values,
                              double yearly_error);

// Indices of the first values after each change of the mean, ascending. Circular binary
// segmentation: takes the stretch of at least two values with the largest Student's t against the
// rest. It counts if it is significant at `level`, divided equally among all tested stretches. The
// parts are split likewise (Olshen and others, Circular binary segmentation, Biostatistics 2004,
// with t in place of permutations). So a temporary step is found as well. Used in reports and never
// by a gate, since it splits a slope into steps.
std::vector<std::size_t> change_points(std::span<const double> values, double level = 0.001);

}  // namespace stepgate
