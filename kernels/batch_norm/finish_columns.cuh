// SPDX-License-Identifier: MIT
// The end of sums over rows: the parts of each column are added.
#pragma once

#include "kernels/launch.cuh"

namespace stepgate {

constexpr int finish_lines = 32, finish_block_columns = 32;
constexpr int finish_threads = finish_lines * finish_block_columns;

// Adds the parts of each of the block's columns in double, in a fixed order, and calls
// finish(column, sum of the first vector, sum of the second). partials are [parts][2 columns].
template <class Finish>
__device__ __forceinline__ void finish_columns(const float* partials, std::int64_t parts,
                                               std::int64_t columns, std::int64_t block,
                                               const Finish& finish) {
  __shared__ double of_lines[2][finish_lines][finish_block_columns];
  const int lane = threadIdx.x % finish_block_columns, line = threadIdx.x / finish_block_columns;
  const std::int64_t column = block * finish_block_columns + lane;
  double first = 0, second = 0;
  if (column < columns) {
#pragma unroll 4
    for (std::int64_t part = line; part < parts; part += finish_lines) {
      first += partials[part * 2 * columns + column];
      second += partials[(part * 2 + 1) * columns + column];
    }
  }
  of_lines[0][line][lane] = first;
  of_lines[1][line][lane] = second;
  __syncthreads();
  if (line > 0 || column >= columns) return;
  for (int other = 1; other < finish_lines; ++other) {
    first += of_lines[0][other][lane];
    second += of_lines[1][other][lane];
  }
  finish(column, first, second);
}

}  // namespace stepgate
