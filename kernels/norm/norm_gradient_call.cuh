// SPDX-License-Identifier: MIT
// Parts that the kernels of layer_norm_gradient and rms_norm_gradient share: their operands, and
// the sums over a row.
#pragma once

#include "kernels/launch.cuh"
#include "kernels/norm/norm.h"

namespace stepgate {

template <class Number>
struct NormGradientCall {
  const Number* d_y;
  const Number* x;
  const Number* weight;
  const float* statistics;
  Number* d_x;
  float* partials;
  float* sums_d_x;  // [parts][columns]; null where nobody asks
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t parts;
  float per_column;  // 1 / columns
  bool accumulate;
};

struct RowStatistics {
  float mean, scale;
};

template <NormKind kind>
__device__ __forceinline__ RowStatistics statistics_at(const float* statistics, std::int64_t row) {
  if constexpr (kind == NormKind::rms) return {0.0f, statistics[row]};
  return {statistics[2 * row], statistics[2 * row + 1]};
}

// Sums of g = d_y weight, and of g times the normalised x.
struct RowSums {
  float sum, projection;
};

__device__ __forceinline__ RowSums over_warp(RowSums own) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    own.sum += __shfl_xor_sync(0xffffffffu, own.sum, distance);
    own.projection += __shfl_xor_sync(0xffffffffu, own.projection, distance);
  }
  return own;
}

// A barrier of so many threads. Its number is spelt out, since a kernel in which the compiler does
// not know it takes all sixteen of a block.
__device__ __forceinline__ void meet(int barrier, int threads) {
  switch (barrier) {
    case 1:
      asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
      return;
    case 2:
      asm volatile("bar.sync 2, %0;" ::"r"(threads) : "memory");
      return;
    case 3:
      asm volatile("bar.sync 3, %0;" ::"r"(threads) : "memory");
      return;
    default:
      asm volatile("bar.sync 4, %0;" ::"r"(threads) : "memory");
      return;
  }
}

// Every thread gets the sums over the `warps` warps of its group, which meet at barrier `barrier`.
// `of_warp` is the group's; a sum takes another one than the sum before, so that one barrier a sum
// suffices.
__device__ __forceinline__ RowSums over_group(RowSums own, RowSums* of_warp, int warp, int warps,
                                              int barrier) {
  own = over_warp(own);
  if (warps == 1) return own;
  if (threadIdx.x % 32 == 0) of_warp[warp] = own;
  meet(barrier, warps * 32);
  RowSums all{0.0f, 0.0f};
#pragma unroll 1  // the sums over rows need the registers
  for (int i = 0; i < warps; ++i) {
    all.sum += of_warp[i].sum;
    all.projection += of_warp[i].projection;
  }
  return all;
}

// d_x = scale (g - mean of g - n mean of (g n)) with n the normalised x; rms without the mean of g.
// The product g is rounded by itself wherever it is taken: what is left of it behind its mean may
// be small.
__device__ __forceinline__ float weighed(float d_y, float weight) {
  return __fmul_rn(d_y, weight);
}

}  // namespace stepgate
