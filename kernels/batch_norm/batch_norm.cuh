// SPDX-License-Identifier: MIT
// The parts of batch norm on the device that a norm with pooling shares: the norm of a number, and
// the gradient of x.
#pragma once

#include "kernels/batch_norm/batch_statistics.h"
#include "kernels/walk_rows.cuh"

namespace stepgate {

// Loads the numbers of a thread's columns from a vector of the statistics or of the means.
template <bool whole>
__device__ __forceinline__ Octet<float> vector_at(const float* vectors, std::int64_t vector,
                                                  std::int64_t columns, std::int64_t column,
                                                  int count) {
  return load_octet<whole>(vectors, vector * columns + column, count);
}

// The norm of a thread's columns. Its sign decides about the relu, forward and backward, so there
// is one expression, and the compiler may not choose how to round it.
struct NormOfColumns {
  Octet<float> mean, scale, bias;

  template <bool whole>
  static __device__ __forceinline__ NormOfColumns at(const float* statistics, std::int64_t columns,
                                                     std::int64_t column, int count) {
    const auto vector = [&](std::int64_t which) {
      return vector_at<whole>(statistics, which, columns, column, count);
    };
    return {vector(batch_statistics::mean), vector(batch_statistics::scale),
            vector(batch_statistics::bias)};
  }
  __device__ __forceinline__ float normed(float x, int i) const {
    return __fmaf_rn(__fsub_rn(x, mean.values[i]), scale.values[i], bias.values[i]);
  }
};

// Rows whose inputs fit in a thread's registers at once.
template <class Number>
constexpr int rows_in_flight = sizeof(Number) == 2 ? 4 : 2;

// Both passes over a gradient need this of a column.
struct GradientOfColumns {
  NormOfColumns norm;
  Octet<float> reciprocal;

  template <bool whole>
  static __device__ __forceinline__ GradientOfColumns at(const float* statistics,
                                                         std::int64_t columns, std::int64_t column,
                                                         int count) {
    return {NormOfColumns::at<whole>(statistics, columns, column, count),
            vector_at<whole>(statistics, batch_statistics::reciprocal, columns, column, count)};
  }
  __device__ __forceinline__ float normalised(float x, int i) const {
    return (x - norm.mean.values[i]) * reciprocal.values[i];
  }
};

// A Source says where d comes from: read<whole>(spot) returns the inputs that at(inputs, i) needs
// for d of column i, has_relu says whether d is 0 where the norm is not positive, and rows_at_once
// how many rows a thread reads ahead.
template <class Number, class Source>
struct GradientInputs {
  Octet<Number> x;
  decltype(Source{}.template read<true>(Spot{})) of_source;

  __device__ __forceinline__ float d(const Source& source, const NormOfColumns& norm, int i) const {
    const float passed = source.at(of_source, i);
    return !Source::has_relu || norm.normed(number_of(x, i), i) > 0.0f ? passed : 0.0f;
  }
};

// d_x = scale (d - mean of d - n mean of (d n)).
template <class Number, class Source>
struct GradientApplyOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = Source::rows_at_once, rows_of_thread = 16;
  Source source;
  const Number* x;
  const float* statistics;
  const float* means;
  Number* d_x;
  std::int64_t columns;

  struct Constants {
    GradientOfColumns of;
    Octet<float> mean, projection;
  };
  template <bool whole>
  __device__ Constants constants(std::int64_t column, int count) const {
    return {GradientOfColumns::at<whole>(statistics, columns, column, count),
            vector_at<whole>(means, 0, columns, column, count),
            vector_at<whole>(means, 1, columns, column, count)};
  }
  template <bool whole>
  __device__ GradientInputs<Number, Source> read(const Spot& spot) const {
    return {load_octet<whole>(x, spot.index, spot.count), source.template read<whole>(spot)};
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const Constants& column,
                         const GradientInputs<Number, Source>& inputs, ColumnSums&) const {
    float gradient[octet];
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const float d = inputs.d(source, column.of.norm, i);
      const float n = column.of.normalised(number_of(inputs.x, i), i);
      const float inner = (d - column.mean.values[i]) - n * column.projection.values[i];
      gradient[i] = column.of.norm.scale.values[i] * inner;
    }
    store_octet<whole>(d_x, spot.index, spot.count, packed<Number>(gradient));
  }
};

}  // namespace stepgate
