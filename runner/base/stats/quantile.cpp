// SPDX-License-Identifier: MIT
// Computes quantiles of type 7 and by nearest rank.
#include "base/stats/quantile.h"

#include <algorithm>
#include <cmath>

namespace stepgate {

double quantile_of_sorted(std::span<const double> sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double fraction = position - static_cast<double>(below);
  return sorted[below] + fraction * (sorted[above] - sorted[below]);
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return quantile_of_sorted(values, share);
}

double nearest_rank(std::vector<double> values, double share) {
  const double count = static_cast<double>(values.size());
  // The slack keeps rounding, such as 0.95 * 20 = 19.000000000000004, from raising the rank by one.
  const double rank = std::clamp(std::ceil(share * count - 1e-9), 1.0, count);
  const auto wanted = values.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::nth_element(values.begin(), wanted, values.end());
  return *wanted;
}

}  // namespace stepgate
