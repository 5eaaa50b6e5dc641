// SPDX-License-Identifier: MIT
#include "base/stats/sorted_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/stats/e_process.h"
#include "base/stats/quantile.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

double upper_median_by_selection(std::vector<double> values, double centre) {
  for (double& value : values) value = std::abs(value - centre);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The results are bit-identical, for samples with and without ties.
TEST(SortedValues, AreWhatSortingSaysAfterEveryValue) {
  Random random(1);
  for (const double grain : {0.0, 0.25}) {
    SortedValues values;
    std::vector<double> sorted;
    for (int count = 1; count <= 3000; ++count) {
      const double drawn = random.normal();
      const double value = grain > 0 ? grain * std::round(drawn / grain) : drawn;
      values.add(value);
      sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), value), value);
      ASSERT_EQ(values.size(), sorted.size());
      const std::size_t rank = random.below(sorted.size());
      ASSERT_EQ(values[rank], sorted[rank]);
      ASSERT_EQ(values.below(value).count,
                static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), value) -
                                         sorted.begin()));
      const double centre = median_of(values);
      ASSERT_EQ(centre, quantile_of_sorted(sorted, 0.5));
      double sum = 0;
      for (const double one : sorted) sum += std::clamp(one - centre, -0.5, 0.5);
      ASSERT_NEAR(sum_of_bounded_deviations(values, centre, 0.5), sum, 1e-10);
      ASSERT_EQ(upper_median_deviation(values, centre), upper_median_by_selection(sorted, centre));
    }
  }
}

// Sorting every prefix anew would take a minute.
TEST(SortedValues, MakeTheScalesOfManyRoundsQuick) {
  Random random(2);
  std::vector<double> contrasts(sanitized ? 10'000 : 100'000);
  for (double& contrast : contrasts) contrast = 0.01 * random.normal();
  const auto start = std::chrono::steady_clock::now();
  const std::vector<double> scales = predictable_scales(contrasts);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_NEAR(scales.back(), 0.01, 0.0002);
}

}  // namespace
}  // namespace stepgate
