// SPDX-License-Identifier: MIT
// Student's t (Boost.Math).
#include "stats/prediction_interval.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "stats/moments.h"
#include "support/require.h"

namespace stepgate {
namespace {

// The value that a share `above` of the distribution exceeds.
double upper_quantile(const Prediction& prediction, double above) {
  const boost::math::students_t distribution(static_cast<double>(prediction.earlier_runs - 1));
  return boost::math::quantile(boost::math::complement(distribution, above));
}

}  // namespace

Prediction predict(double new_run, std::span<const double> earlier_runs) {
  require(earlier_runs.size() >= 2, "one earlier run does not say how far runs differ");
  const Moments moments = moments_of(earlier_runs);
  const auto runs = static_cast<double>(moments.count);
  Prediction prediction;
  prediction.earlier_runs = moments.count;
  prediction.difference = new_run - moments.mean;
  prediction.deviation = std::sqrt(moments.variance * runs / (runs - 1));
  prediction.scale = prediction.deviation * std::sqrt(1 + 1 / runs);
  return prediction;
}

bool shows_above(const Prediction& prediction, double margin, double error) {
  return prediction.difference - upper_quantile(prediction, error) * prediction.scale > margin;
}

bool shows_below(const Prediction& prediction, double margin, double error) {
  return prediction.difference + upper_quantile(prediction, error) * prediction.scale < margin;
}

PredictionInterval interval_of(const Prediction& prediction, double error) {
  const double half_width = upper_quantile(prediction, error / 2) * prediction.scale;
  return {.low = prediction.difference - half_width, .high = prediction.difference + half_width};
}

double smallest_shown(const Prediction& prediction, double error, double power) {
  return (upper_quantile(prediction, error) + upper_quantile(prediction, 1 - power)) *
         prediction.scale;
}

}  // namespace stepgate
