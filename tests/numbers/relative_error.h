// SPDX-License-Identifier: MIT
// The relative error of a device's numbers, as a whole vector.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace stepgate {

// ||got - expected|| / ||expected||; NaN when any number is NaN.
inline double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double difference = 0;
  double norm = 0;
  for (std::size_t index = 0; index < std::min(got.size(), expected.size()); ++index) {
    const double apart = static_cast<double>(got[index]) - expected[index];
    difference += apart * apart;
    norm += static_cast<double>(expected[index]) * expected[index];
  }
  return std::sqrt(difference / norm);
}

}  // namespace stepgate
