// SPDX-License-Identifier: MIT
// Attention with tensor cores: a block owns a tile of queries and goes through the keys that they
// see. The softmax of each row is updated in registers.
#pragma once

#include "kernels/attention/packed_shape.cuh"
#include "kernels/attention/tiles.cuh"

namespace stepgate {

// Tile sizes. The next tile of keys and values is copied while the current one is multiplied.
template <int width>
struct AttentionTiles {
  static constexpr int warps = 8;
  static constexpr int threads = 32 * warps;
  static constexpr int queries = rows_of_warp * warps;
  static constexpr int keys = 64;
  static constexpr int query_bytes = Tile<width>::bytes(queries);
  static constexpr int key_bytes = Tile<width>::bytes(keys);
  static constexpr int shared_bytes = query_bytes + 4 * key_bytes;
  // Two blocks share a multiprocessor where the sums leave enough registers.
  static constexpr int blocks = width == 64 ? 2 : 1;
};

// The softmax state of a warp for its 16 rows; a lane holds columns of two rows.
template <int width>
struct RunningSoftmax {
  float sums[width / 8][4] = {};
  float largest[2] = {-INFINITY, -INFINITY};  // score, not scaled
  float weights[2] = {};                      // of this lane's columns only

  // Converts scores to weights relative to the largest score of their row so far, and rescales the
  // sums. Every row must have a visible score in the first tile.
  template <int columns>
  __device__ void take(float (&scores)[columns][4], float exponent_scale) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float larger = largest[half];
#pragma unroll
      for (int n = 0; n < columns; ++n) {
        larger = fmaxf(larger, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      }
      larger = fmaxf(larger, __shfl_xor_sync(0xffffffffu, larger, 1));
      larger = fmaxf(larger, __shfl_xor_sync(0xffffffffu, larger, 2));
      const float keep = power_of_two((largest[half] - larger) * exponent_scale);
      const float offset = larger * exponent_scale;
      float sum = 0.0f;
#pragma unroll
      for (int n = 0; n < columns; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = power_of_two(scores[n][i] * exponent_scale - offset);
          sum += scores[n][i];
        }
      }
      weights[half] = weights[half] * keep + sum;
      largest[half] = larger;
#pragma unroll
      for (int n = 0; n < width / 8; ++n) {
        sums[n][2 * half] *= keep;
        sums[n][2 * half + 1] *= keep;
      }
    }
  }

  __device__ float row_weight(int half) const {
    float all = weights[half];
    all += __shfl_xor_sync(0xffffffffu, all, 1);
    return all + __shfl_xor_sync(0xffffffffu, all, 2);
  }
};

// Treats scores of keys that their query does not see as minus infinity.
template <int columns>
__device__ __forceinline__ void hide_keys(float (&scores)[columns][4], const PackedShape& shape,
                                          int first_query, int first_key) {
#pragma unroll
  for (int n = 0; n < columns; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first_key + sum_column(n, i) >= shape.keys_of(first_query + sum_row(i)))
        scores[n][i] = -INFINITY;
    }
  }
}

template <class Number, int width>
__global__ void __launch_bounds__(AttentionTiles<width>::threads, AttentionTiles<width>::blocks)
    tiled_attention(PackedShape shape, const Number* qkv, Number* out, float* log_sums) {
  using Tiles = AttentionTiles<width>;
  const int tiles = (shape.tokens + Tiles::queries - 1) / Tiles::queries;
  const HeadOffsets at(shape, blockIdx.x / tiles);
  // The last queries see most keys, so their blocks start first.
  const int block_query = (tiles - 1 - static_cast<int>(blockIdx.x) % tiles) * Tiles::queries;
  const int row_in_block = static_cast<int>(threadIdx.x) / 32 * rows_of_warp;
  const int first_query = block_query + row_in_block;
  const std::int64_t stride = shape.qkv_columns;

  const SharedAddress memory = shared_memory();
  const Tile<width> queries{memory};
  const auto keys = [&](int tile) {
    return Tile<width>{memory + Tiles::query_bytes + tile % 2 * 2 * Tiles::key_bytes};
  };
  const auto values = [&](int tile) { return Tile<width>{keys(tile).start + Tiles::key_bytes}; };
  const auto copy = [&](int tile) {
    const int first = tile * Tiles::keys;
    copy_tile<Tiles::keys, Tiles::threads>(keys(tile), qkv + at.keys, stride, first, shape.tokens);
    copy_tile<Tiles::keys, Tiles::threads>(values(tile), qkv + at.values, stride, first,
                                           shape.tokens);
  };

  copy_tile<Tiles::queries, Tiles::threads>(queries, qkv + at.queries, stride, block_query,
                                            shape.tokens);
  copy(0);
  wait_for_copies();
  __syncthreads();
  Blocks own[width / 16];
#pragma unroll
  for (int step = 0; step < width / 16; ++step) {
    own[step] = left_factors(queries, row_in_block, step);
  }

  RunningSoftmax<width> softmax;
  const float exponent_scale = shape.scale * log2_of_e;
  const int seen = shape.keys_of(block_query + Tiles::queries - 1);
  const int key_tiles = (seen + Tiles::keys - 1) / Tiles::keys;
  for (int tile = 0; tile < key_tiles; ++tile) {
    // After the barrier all copies of this tile have arrived, and no thread still reads the
    // previous tile.
    wait_for_copies();
    __syncthreads();
    if (tile + 1 < key_tiles) copy(tile + 1);
    const int first_key = tile * Tiles::keys;
    if (first_key >= shape.keys_of(first_query + rows_of_warp - 1)) continue;
    float scores[Tiles::keys / 8][4] = {};
    multiply_by_rows<Number>(
        scores, [&](int step) { return own[step]; }, keys(tile));
    if (first_key + Tiles::keys > shape.keys_of(first_query))
      hide_keys(scores, shape, first_query, first_key);
    softmax.take(scores, exponent_scale);
    multiply_by_columns<Number, width>(softmax.sums, scores, values(tile));
  }

  const float weights[2] = {softmax.row_weight(0), softmax.row_weight(1)};
  const float factors[2] = {1.0f / weights[0], 1.0f / weights[1]};
  const int count = shape.tokens - first_query;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = sum_row(2 * half);
    if (threadIdx.x % 4 != 0 || row >= count) continue;
    log_sums[at.log_sums + first_query + row] =
        softmax.largest[half] * shape.scale + logf(weights[half]);
  }
  store_rows(softmax.sums, factors, queries, row_in_block,
             out + at.out + first_query * shape.columns, shape.columns, count);
}

}  // namespace stepgate
