// SPDX-License-Identifier: MIT
#include "stats/theil_sen.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stepgate {

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
