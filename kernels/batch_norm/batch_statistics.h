// SPDX-License-Identifier: MIT
// The statistics of a batch norm: their order, for host and device, and the parts of host
// references that the kernels of a norm share with those of a norm with pooling.
#pragma once

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {

// The vectors of the statistics, each of as many numbers as there are columns.
namespace batch_statistics {

constexpr std::int64_t mean = 0;
constexpr std::int64_t reciprocal = 1;  // of the deviation
constexpr std::int64_t scale = 2;       // weight times reciprocal
constexpr std::int64_t bias = 3;
constexpr std::int64_t size = batch_statistics_vectors;

}  // namespace batch_statistics

// The statistics as a host reference reads them.
struct HostStatistics {
  const void* numbers;
  DType single;
  std::int64_t columns;

  double at(std::int64_t vector, std::int64_t column) const {
    return number_at(numbers, single, vector * columns + column);
  }
  double normalised(double x, std::int64_t column) const {
    return (x - at(batch_statistics::mean, column)) * at(batch_statistics::reciprocal, column);
  }
  double normed(double x, std::int64_t column) const {
    return (x - at(batch_statistics::mean, column)) * at(batch_statistics::scale, column) +
           at(batch_statistics::bias, column);
  }
};

// Writes d_x = scale (d - mean of d - n mean of (d n)); d(i) returns d of element i.
template <class Gradient>
void apply_batch_gradient(const MatrixShape& shape, DType dtype, const void* x,
                          const void* statistics, const void* means, void* d_x, Gradient d) {
  const DType single = single_of(dtype);
  const HostStatistics norm{statistics, single, shape.columns};
  for (std::int64_t i = 0; i < elements_of(shape); ++i) {
    const std::int64_t c = i % shape.columns;
    const double spread =
        number_at(means, single, c) +
        norm.normalised(number_at(x, dtype, i), c) * number_at(means, single, shape.columns + c);
    set_number(d_x, dtype, i, norm.at(batch_statistics::scale, c) * (d(i) - spread));
  }
}

// Extents of operands of a norm, for any shape with these sizes.
namespace extent {

inline constexpr auto batch_statistics = [](const auto& s) {
  return stepgate::batch_statistics::size * s.columns;
};
inline constexpr auto batch_partials = [](const auto& s) { return s.parts * 2 * s.columns; };
inline constexpr auto batch_means = [](const auto& s) { return 2 * s.columns; };

}  // namespace extent

}  // namespace stepgate
