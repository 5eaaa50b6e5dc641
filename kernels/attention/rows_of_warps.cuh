// SPDX-License-Identifier: MIT
// Attention without tensor cores, for any storage and any head width. A warp owns a row and
// processes the rows that it meets 32 at a time. This file has the two products that this needs.
#pragma once

#include <cstdint>

#include "kernels/launch.cuh"

namespace stepgate {

constexpr int row_warps = 4;  // of a block
constexpr int widest_head = 512;
constexpr unsigned all_lanes = 0xffffffffu;

// Shared memory in which a warp transposes rows; the odd stride avoids bank conflicts.
struct TurningSpace {
  float numbers[32][33];
};

template <class Number>
struct RowsOfHead {
  const Number* first;
  std::int64_t stride;
  int width;

  __device__ const Number* row(int index) const { return first + index * stride; }
};

// Each lane gets the dot product of `own` with row first + lane; lanes from `count` on get 0.
template <class Number>
__device__ float dot_with_rows(const Number* own, const RowsOfHead<Number>& rows, int first,
                               int count, TurningSpace& space) {
  const int lane = threadIdx.x % 32;
  float sum = 0.0f;
  for (int start = 0; start < rows.width; start += 32) {
    const int columns = min(32, rows.width - start);
    __syncwarp();
#pragma unroll 8
    for (int r = 0; r < 32; ++r) {
      const bool exists = r < count && lane < columns;
      space.numbers[r][lane] = exists ? to_float(rows.row(first + r)[start + lane]) : 0.0f;
    }
    __syncwarp();
    for (int i = 0; i < columns; ++i) sum += to_float(own[start + i]) * space.numbers[lane][i];
  }
  return sum;
}

// Computes sums = keep * sums + (sum over the first `count` lanes of their factor times row first +
// lane). Lane c % 32 holds column c of `sums`.
template <class Number>
__device__ void add_rows(float* sums, float keep, float factor, const RowsOfHead<Number>& rows,
                         int first, int count) {
  for (int start = 0; start < rows.width; start += 32) {
    const int column = start + static_cast<int>(threadIdx.x % 32);
    const bool exists = column < rows.width;
    float sum = exists ? keep * sums[column] : 0.0f;
#pragma unroll 8
    for (int r = 0; r < count; ++r) {
      const float number = exists ? to_float(rows.row(first + r)[column]) : 0.0f;
      sum += __shfl_sync(all_lanes, factor, r) * number;
    }
    if (exists) sums[column] = sum;
  }
}

// Writes the columns that add_rows summed in this lane.
template <class Number>
__device__ void store_sums(const float* sums, float factor, Number* to, int width) {
  for (int column = threadIdx.x % 32; column < width; column += 32) {
    to[column] = from_float<Number>(factor * sums[column]);
  }
}

__device__ inline void clear_sums(float* sums, int width) {
  for (int column = threadIdx.x % 32; column < width; column += 32) sums[column] = 0.0f;
}

}  // namespace stepgate
