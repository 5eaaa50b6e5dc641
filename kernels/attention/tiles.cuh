// SPDX-License-Identifier: MIT
// Tiles of a head's rows in shared memory, and products of them by tensor cores. A warp owns 16
// rows of every product. What is multiplied with what is the kernels'.
#pragma once

#include <cstdint>

#include "kernels/attention/instructions.cuh"

namespace stepgate {

constexpr int rows_of_warp = 16;
constexpr float log2_of_e = 1.44269504f;

// Rows of `width` 2-byte numbers. The 16-byte chunks of a row change places by the row's number, so
// that 8 rows' chunks of one column lie in different banks.
template <int width>
struct Tile {
  static constexpr int chunks = width / 8;  // of a row

  static constexpr int bytes(int rows) { return rows * width * 2; }

  SharedAddress start;

  __device__ SharedAddress at(int row, int chunk) const {
    return start + row * (width * 2) + ((chunk ^ (row % 8)) * 16);
  }
};

// Starts to copy `rows` rows from row `first` on, zeros from row `end` on. All `threads` threads
// take part: each has one column of chunks, in rows so far apart that all have the same place in
// it.
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

// sums[16 x 8 columns] += left[16 x width] * rows^T; left(step) are factors 16 * step and the next.
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

// sums[16 x width] += left[16 x 8 columns] * rows, the left factors rounded to storage.
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

// Row of the 16, and column of the 8 times `columns`, of sums[n][i].
__device__ __forceinline__ int sum_row(int i) {
  return static_cast<int>(threadIdx.x % 32) / 4 + i / 2 * 8;
}
__device__ __forceinline__ int sum_column(int n, int i) {
  return 8 * n + static_cast<int>(threadIdx.x % 4) * 2 + i % 2;
}

// Writes the first `count` of the warp's 16 rows, times a factor for the upper and one for the
// lower 8, through rows of a tile that no other warp uses any more: so that 16 bytes move at once.
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
