// SPDX-License-Identifier: MIT
// Mean and variance of a sample, and the straight line through a sequence.
#pragma once

#include <cstdint>
#include <span>

namespace stepgate {

struct Moments {
  std::int64_t count = 0;
  double mean = 0;
  double variance = 0;  // of the sample: divided by count, as Boost.Accumulators does
};

Moments moments_of(std::span<const double> values);

// The least-squares line through the points (0, v0), (1, v1), ...
struct Trend {
  double slope = 0;           // a position
  double standard_error = 0;  // of the slope, from the residuals
};

// At least three values.
Trend trend_of(std::span<const double> values);

}  // namespace stepgate
