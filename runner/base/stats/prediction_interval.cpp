// SPDX-License-Identifier: MIT
// The quantiles of Student's t come from Boost.Math.
#include "base/stats/prediction_interval.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "base/require.h"
#include "base/stats/moments.h"

namespace stepgate {
namespace {

// The value that the share `above` of Student's t distribution exceeds.
double upper_quantile(std::int64_t degrees, double above) {
  const boost::math::students_t distribution(static_cast<double>(degrees));
  return boost::math::quantile(boost::math::complement(distribution, above));
}

// The distance above its centre that the difference exceeds in at most the share `above` of all
// comparisons. This is the bound of Graybill and Wang for a sum of two variances (Confidence
// intervals on nonnegative linear combinations of variances, 1980). It is exact if one variance is
// zero, and conservative otherwise.
double reach(const Prediction& prediction, double above) {
  const double t = upper_quantile(prediction.units - 1, above);
  double square = t * t * prediction.between;
  if (prediction.within > 0) {
    const double t_within = upper_quantile(prediction.runs - prediction.units, above);
    square += t_within * t_within * prediction.within;
  }
  return std::sqrt(square);
}

// The square of the standard error of the mean.
double squared_error(const Moments& moments) {
  return moments.variance / static_cast<double>(moments.count - 1);
}

}  // namespace

Prediction predict(double new_run, std::span<const std::vector<double>> earlier_units) {
  require(earlier_units.size() >= 2, "one unit of earlier runs does not say how far units differ");
  Prediction prediction;
  std::vector<double> means;
  double squares_within = 0;
  double mean_of_inverses = 0;  // mean over units of 1 / (number of runs)
  const auto units = static_cast<double>(earlier_units.size());
  for (const std::vector<double>& unit : earlier_units) {
    const Moments moments = moments_of(unit);
    means.push_back(moments.mean);
    prediction.runs += moments.count;
    squares_within += moments.variance * static_cast<double>(moments.count);
    mean_of_inverses += 1 / static_cast<double>(moments.count) / units;
  }
  const Moments moments = moments_of(means);
  prediction.units = moments.count;
  prediction.difference = new_run - moments.mean;
  const double variance = moments.variance * units / (units - 1);
  prediction.between = variance * (1 + 1 / units);
  if (prediction.runs > prediction.units) {
    const auto degrees = static_cast<double>(prediction.runs - prediction.units);
    prediction.within = squares_within / degrees * (1 - mean_of_inverses);
  }
  prediction.deviation = std::sqrt(variance + prediction.within);
  return prediction;
}

bool shows_above(const Prediction& prediction, double margin, double error) {
  return prediction.difference - reach(prediction, error) > margin;
}

bool shows_below(const Prediction& prediction, double margin, double error) {
  return prediction.difference + reach(prediction, error) < margin;
}

PredictionInterval interval_of(const Prediction& prediction, double error) {
  const double half_width = reach(prediction, error / 2);
  return {.low = prediction.difference - half_width, .high = prediction.difference + half_width};
}

double smallest_shown(const Prediction& prediction, double error, double power) {
  return reach(prediction, error) + reach(prediction, 1 - power);
}

UnpairedDifference unpaired_difference(std::span<const double> before,
                                       std::span<const double> after, double confidence) {
  const Moments first = moments_of(before);
  const Moments second = moments_of(after);
  const double one = squared_error(first);
  const double other = squared_error(second);
  const double both = one + other;
  const double mean = second.mean - first.mean;
  if (both <= 0) return {.mean = mean, .low = mean, .high = mean};
  const double degrees = both * both /
                         (one * one / static_cast<double>(first.count - 1) +
                          other * other / static_cast<double>(second.count - 1));
  const boost::math::students_t distribution(degrees);
  const double reach = boost::math::quantile(distribution, 0.5 + confidence / 2) * std::sqrt(both);
  return {.mean = mean, .low = mean - reach, .high = mean + reach};
}

}  // namespace stepgate
