// SPDX-License-Identifier: MIT
// Moments by Boost.Accumulators, whose streaming update does not cancel for values far from zero.
#include "base/stats/moments.h"

#include <algorithm>
#include <boost/accumulators/accumulators.hpp>
#include <boost/accumulators/statistics/count.hpp>
#include <boost/accumulators/statistics/mean.hpp>
#include <boost/accumulators/statistics/stats.hpp>
#include <boost/accumulators/statistics/variance.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstddef>
#include <vector>

namespace stepgate {
namespace accumulate = boost::accumulators;

Moments moments_of(std::span<const double> values) {
  accumulate::accumulator_set<
      double, accumulate::stats<accumulate::tag::count, accumulate::tag::immediate_mean,
                                accumulate::tag::variance(accumulate::immediate)>>
      set;
  for (const double value : values) set(value);
  Moments moments;
  moments.count = static_cast<std::int64_t>(accumulate::count(set));
  if (moments.count == 0) return moments;
  moments.mean = accumulate::mean(set);
  moments.variance = accumulate::variance(set);
  return moments;
}

std::optional<double> half_interval_of_mean(std::span<const double> values, double error) {
  if (values.size() < 2) return std::nullopt;
  const auto degrees = static_cast<double>(values.size() - 1);
  const double beyond =
      boost::math::quantile(boost::math::complement(boost::math::students_t(degrees), error / 2));
  return beyond * std::sqrt(moments_of(values).variance / degrees);
}

Trend trend_of(std::span<const double> values) {
  const double count = static_cast<double>(values.size());
  const double middle = 0.5 * (count - 1);
  const double mean = moments_of(values).mean;
  double spread = 0;
  double product = 0;
  for (std::size_t position = 0; position < values.size(); ++position) {
    const double offset = static_cast<double>(position) - middle;
    spread += offset * offset;
    product += offset * (values[position] - mean);
  }
  Trend trend;
  trend.slope = product / spread;
  std::vector<double> residuals;
  residuals.reserve(values.size());
  for (std::size_t position = 0; position < values.size(); ++position) {
    const double offset = static_cast<double>(position) - middle;
    residuals.push_back(values[position] - mean - trend.slope * offset);
  }
  const double squares = moments_of(residuals).variance * count;
  trend.standard_error = std::sqrt(squares / (count - 2) / spread);
  return trend;
}

double theil_sen_slope(std::span<const std::pair<double, double>> points) {
  std::vector<double> slopes;
  for (std::size_t one = 0; one < points.size(); ++one) {
    for (std::size_t other = one + 1; other < points.size(); ++other) {
      slopes.push_back((points[other].second - points[one].second) /
                       (points[other].first - points[one].first));
    }
  }
  if (slopes.empty()) return 0;
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  return *middle;
}

}  // namespace stepgate
