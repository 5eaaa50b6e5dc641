// SPDX-License-Identifier: MIT
// The end of sums over rows: the parts of each column are added. Batch norm and group norm share
// it.
#pragma once

#include "kernels/launch.cuh"

namespace stepgate {

constexpr int finish_lines = 32, finish_block_columns = 32;
constexpr int finish_threads = finish_lines * finish_block_columns;

// Adds the parts begin, begin + step, ... of a column in double, in that order. partials begin with
// the column, and are [parts][2 columns].
__device__ __forceinline__ void add_parts(const float* partials, std::int64_t begin,
                                          std::int64_t step, std::int64_t parts,
                                          std::int64_t columns, double& first, double& second) {
#pragma unroll 4
  for (std::int64_t part = begin; part < parts; part += step) {
    first += partials[part * 2 * columns];
    second += partials[(part * 2 + 1) * columns];
  }
}

// Stores the gradients of a norm's weight and bias, or adds them to those that are there.
template <class Number>
struct ParameterGradients {
  Number *d_weight, *d_bias;
  bool accumulate;

  struct Old {
    float weight, bias;
  };
  __device__ Old read(std::int64_t c) const {
    return accumulate ? Old{to_float(d_weight[c]), to_float(d_bias[c])} : Old{};
  }
  __device__ void operator()(std::int64_t c, const Old& old, double sum, double projection) const {
    d_weight[c] = from_float<Number>(static_cast<float>(old.weight + projection));
    d_bias[c] = from_float<Number>(static_cast<float>(old.bias + sum));
  }
};

// Adds the parts of each of the block's columns in a fixed order, and calls finish(column, inputs,
// sum of the first vector, sum of the second). inputs are what finish.read(column) returned before
// the parts were read: behind them, its latency would come on top.
template <class Finish>
__device__ __forceinline__ void finish_columns(const float* partials, std::int64_t parts,
                                               std::int64_t columns, std::int64_t block,
                                               const Finish& finish) {
  __shared__ double of_lines[2][finish_lines][finish_block_columns];
  const int lane = threadIdx.x % finish_block_columns, line = threadIdx.x / finish_block_columns;
  const std::int64_t column = block * finish_block_columns + lane;
  decltype(finish.read(column)) inputs{};
  double first = 0, second = 0;
  if (column < columns) {
    if (line == 0) inputs = finish.read(column);
    add_parts(partials + column, line, finish_lines, parts, columns, first, second);
  }
  of_lines[0][line][lane] = first;
  of_lines[1][line][lane] = second;
  __syncthreads();
  if (line > 0 || column >= columns) return;
  for (int other = 1; other < finish_lines; ++other) {
    first += of_lines[0][other][lane];
    second += of_lines[1][other][lane];
  }
  finish(column, inputs, first, second);
}

}  // namespace stepgate
