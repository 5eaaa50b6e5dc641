// SPDX-License-Identifier: MIT
// Boost.Math computes Student's t and the normal distribution.
#include "base/stats/rank_tests.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <vector>

namespace stepgate {
namespace {

constexpr std::size_t fewest_of_a_sample = 5;
constexpr std::size_t fewest_in_a_row = 10;

double normal_beyond(double share) {
  return boost::math::quantile(boost::math::complement(boost::math::normal(), share));
}

struct Ranked {
  std::vector<double> ranks;  // from 1, in the order of the values; equal ones share the mean
  double tied = 0;            // the sum of t^3 - t over groups of t equal values
};

Ranked ranked(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t one, std::size_t other) { return values[one] < values[other]; });
  Ranked result{.ranks = std::vector<double>(values.size())};
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    const double shared = 0.5 * static_cast<double>(first + 1 + end);
    const auto equal = static_cast<double>(end - first);
    result.tied += equal * equal * equal - equal;
    for (; first < end; ++first) result.ranks[order[first]] = shared;
  }
  return result;
}

}  // namespace

bool two_samples_differ(std::span<const double> one, std::span<const double> other, double level) {
  if (one.size() < fewest_of_a_sample || other.size() < fewest_of_a_sample) return false;
  std::vector<double> all(one.begin(), one.end());
  all.insert(all.end(), other.begin(), other.end());
  const auto [ranks, tied] = ranked(all);
  const auto first = static_cast<double>(one.size());
  const auto second = static_cast<double>(other.size());
  const double sum =
      std::accumulate(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(one.size()), 0.0);
  const double count = first + second;
  const double expected = first * (count + 1) / 2;
  const double deviation =
      std::sqrt(first * second / 12 * (count + 1 - tied / (count * (count - 1))));
  return std::abs(sum - expected) > normal_beyond(level / 2) * deviation;
}

bool neighbours_agree(std::span<const double> values, double level) {
  if (values.size() < fewest_in_a_row) return false;
  const std::vector<double> ranks = ranked({values.begin(), values.end()}).ranks;
  const auto count = static_cast<double>(ranks.size());
  const double mean = (count + 1) / 2;
  double together = 0;
  double square = 0;
  for (std::size_t index = 0; index < ranks.size(); ++index) {
    square += (ranks[index] - mean) * (ranks[index] - mean);
    if (index > 0) together += (ranks[index] - mean) * (ranks[index - 1] - mean);
  }
  return square > 0 && together / square * std::sqrt(count) > normal_beyond(level);
}

double t_beyond(std::int64_t degrees, double level) {
  const boost::math::students_t distribution(static_cast<double>(degrees));
  return boost::math::quantile(boost::math::complement(distribution, level / 2));
}

}  // namespace stepgate
