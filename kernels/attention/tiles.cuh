// SPDX-License-Identifier: MIT
// Tiles of a head's rows in shared memory, and products of tiles by tensor cores. A warp owns 16
// rows of every product. The kernels decide which tiles are multiplied.
#pragma once

#include "kernels/tensor_cores.cuh"

namespace stepgate {

// Computes 2^value in one instruction, with an error of at most 2 ulp; 0 for minus infinity.
__device__ __forceinline__ float power_of_two(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(power) : "f"(value));
  return power;
}

constexpr int rows_of_warp = 16;
constexpr float log2_of_e = 1.44269504f;

// Starts to copy `rows` rows from row `first` on; rows from `end` on become zeros. All `threads`
// threads take part. Each copies one column of chunks, in rows whose permutation is the same.
template <int rows, int threads, int width, class Number>
__device__ __forceinline__ void copy_tile(Tile<width> to, const Number* from, std::int64_t stride,
                                          int first, int end) {
  constexpr int chunks = Tile<width>::chunks;
  constexpr int step = threads / chunks;
  static_assert(step % 8 == 0 && rows % step == 0);
  const int row = static_cast<int>(threadIdx.x) / chunks;
  const int chunk = static_cast<int>(threadIdx.x) % chunks;
  const SharedAddress target = to.at(row, chunk);
  const Number* source = from + (first + row) * stride + chunk * 8;
#pragma unroll
  for (int i = 0; i < rows / step; ++i) {
    copy_16_async(target + i * Tile<width>::bytes(step), source, first + row + i * step < end);
    source += step * stride;
  }
}

// The warp's 16 rows of a tile as left factors: columns 16 * step and the next 15.
template <int width>
__device__ __forceinline__ Blocks left_factors(Tile<width> tile, int first_row, int step) {
  const int lane = threadIdx.x % 32;
  return load_blocks(tile.at(first_row + lane % 16, (2 * step) ^ (lane / 16)));
}

// Computes sums[16 x 8 columns] += left[16 x width] * rows^T. left(step) returns the left factors
// of columns 16 * step and the next 15.
template <class Number, int width, int columns, class Left>
__device__ __forceinline__ void multiply_by_rows(float (&sums)[columns][4], Left left,
                                                 Tile<width> rows) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 0; step < width / 16; ++step) {
    const Blocks a = left(step);
#pragma unroll
    for (int pair = 0; pair < columns / 2; ++pair) {
      const int row = 16 * pair + lane / 16 * 8 + lane % 8;
      const Blocks b = load_blocks(rows.at(row, (2 * step) ^ (lane / 8 % 2)));
      multiply_blocks<Number>(sums[2 * pair], a, b.pairs[0], b.pairs[1]);
      multiply_blocks<Number>(sums[2 * pair + 1], a, b.pairs[2], b.pairs[3]);
    }
  }
}

// Computes sums[16 x width] += left[16 x 8 columns] * rows, with the left factors rounded to
// storage.
template <class Number, int width, int columns>
__device__ __forceinline__ void multiply_by_columns(float (&sums)[width / 8][4],
                                                    const float (&left)[columns][4],
                                                    Tile<width> rows) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 0; step < columns / 2; ++step) {
    const auto& low = left[2 * step];
    const auto& high = left[2 * step + 1];
    const Blocks a = {rounded_pair<Number>(low[0], low[1]), rounded_pair<Number>(low[2], low[3]),
                      rounded_pair<Number>(high[0], high[1]),
                      rounded_pair<Number>(high[2], high[3])};
#pragma unroll
    for (int pair = 0; pair < width / 16; ++pair) {
      const Blocks b = load_blocks_turned(rows.at(16 * step + lane % 16, (2 * pair) ^ (lane / 16)));
      multiply_blocks<Number>(sums[2 * pair], a, b.pairs[0], b.pairs[1]);
      multiply_blocks<Number>(sums[2 * pair + 1], a, b.pairs[2], b.pairs[3]);
    }
  }
}

// The functions below return the row of sums[n][i] among the 16, and its column among the 8
// `columns`.
__device__ __forceinline__ int sum_row(int i) {
  return static_cast<int>(threadIdx.x % 32) / 4 + i / 2 * 8;
}
__device__ __forceinline__ int sum_column(int n, int i) {
  return 8 * n + static_cast<int>(threadIdx.x % 4) * 2 + i % 2;
}

// Writes the first `count` of the warp's 16 rows, scaled by one factor for the upper and one for
// the lower 8. They pass through rows of a tile that no other warp uses any more, so that each
// access moves 16 bytes.
template <class Number, int width>
__device__ __forceinline__ void store_rows(const float (&sums)[width / 8][4],
                                           const float (&factors)[2], Tile<width> stage,
                                           int first_row, Number* to, std::int64_t stride,
                                           int count) {
  const int lane = threadIdx.x % 32;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < width / 8; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      store_shared(stage.at(first_row + sum_row(2 * half), n) + lane % 4 * 4,
                   rounded_pair<Number>(sums[n][2 * half] * factors[half],
                                        sums[n][2 * half + 1] * factors[half]));
    }
  }
  __syncwarp();
  constexpr int chunks = Tile<width>::chunks;
#pragma unroll
  for (int i = 0; i < rows_of_warp * chunks / 32; ++i) {
    const int row = (i * 32 + lane) / chunks, chunk = (i * 32 + lane) % chunks;
    if (row >= count) continue;
    *reinterpret_cast<uint4*>(to + row * stride + chunk * 8) =
        load_shared_16(stage.at(first_row + row, chunk));
  }
}

}  // namespace stepgate
