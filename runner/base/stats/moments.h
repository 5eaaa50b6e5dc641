// SPDX-License-Identifier: MIT
// Mean and variance of a sample, the straight line through a sequence, and a slope that outliers do
// not move.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace stepgate {

struct Moments {
  std::int64_t count = 0;
  double mean = 0;
  double variance = 0;  // of the sample: divided by count, as Boost.Accumulators does
};

Moments moments_of(std::span<const double> values);

// Half the width of the interval that misses the true mean in the share `error` of all samples, of
// values that are independent (Student's t). nullopt for fewer than two values.
std::optional<double> half_interval_of_mean(std::span<const double> values, double error);

// The least-squares line through the points (0, v0), (1, v1), ...
struct Trend {
  double slope = 0;           // per position
  double standard_error = 0;  // standard error of the slope, from the residuals
};

// Needs at least three values.
Trend trend_of(std::span<const double> values);

// The median of the slopes of all pairs of points (x, y) (Sen, Estimates of the regression
// coefficient based on Kendall's tau, 1968). Of an even number of slopes it is the upper of the two
// in the middle. 0 for fewer than two points. All x must differ. Up to 29 % outliers do not move it
// far.
double theil_sen_slope(std::span<const std::pair<double, double>> points);

}  // namespace stepgate
