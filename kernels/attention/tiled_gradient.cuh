// SPDX-License-Identifier: MIT
// The gradient of attention with tensor cores: a block owns a tile of queries for dQ, or of keys
// for dK and dV, and goes through the rows that it meets. A block that owned both would add to rows
// of other blocks, in an order that varies from run to run.
#pragma once

#include "kernels/attention/plain_gradient.cuh"
#include "kernels/attention/tiles.cuh"

namespace stepgate {

// Tile sizes. Two tiles are owned by the block; the next pair of other tiles is copied while the
// current pair is multiplied. Registers limit the rows per pair and the blocks per multiprocessor.
template <int head_width, int rows_at_once, int blocks_at_once>
struct GradientTiles {
  static constexpr int width = head_width;
  static constexpr int warps = 4;
  static constexpr int threads = 32 * warps;
  static constexpr int blocks = blocks_at_once;
  static constexpr int owned = rows_of_warp * warps;
  static constexpr int walked = rows_at_once;
  static constexpr int owned_bytes = Tile<width>::bytes(owned);
  static constexpr int walked_bytes = Tile<width>::bytes(walked);
  static constexpr int tile_bytes = 2 * owned_bytes + 4 * walked_bytes;
  static constexpr int statistics_bytes = walked * 4;  // of walked queries: log sums or row dots
  static constexpr int shared_bytes = tile_bytes + 4 * statistics_bytes;
};

template <int width>
using QueryTiles = GradientTiles<width, width == 64 ? 64 : 32, 3>;
template <int width>
using KeyTiles = GradientTiles<width, 32, width == 64 ? 3 : 2>;

// The positions of a block's tiles in shared memory.
template <class Tiles>
struct GradientMemory {
  using HeadTile = Tile<Tiles::width>;
  SharedAddress start;

  __device__ HeadTile owned(int which) const { return {start + which * Tiles::owned_bytes}; }
  __device__ HeadTile walked(int tile, int which) const {
    return {start + 2 * Tiles::owned_bytes + (tile % 2 * 2 + which) * Tiles::walked_bytes};
  }
  __device__ SharedAddress statistics(int tile, int which) const {
    return start + Tiles::tile_bytes + (tile % 2 * 2 + which) * Tiles::statistics_bytes;
  }
};

// Starts to copy the same rows of two operands to two tiles.
template <int rows, int threads, int width, class Number>
__device__ __forceinline__ void copy_pair(Tile<width> to, const RowsOfHead<Number>& from,
                                          Tile<width> to_other, const RowsOfHead<Number>& other,
                                          int first, int end) {
  copy_tile<rows, threads>(to, from.first, from.stride, first, end);
  copy_tile<rows, threads>(to_other, other.first, other.stride, first, end);
}

// Rows beyond the last query get an infinite logarithm, which makes their weights 0.
template <class Number>
__device__ __forceinline__ void copy_statistics(const HeadRows<Number>& head, int token, int end,
                                                SharedAddress log_sum, SharedAddress row_dot) {
  if (token < end) {
    copy_float_async(log_sum, head.log_sums + token);
    copy_float_async(row_dot, head.row_dots + token);
  } else {
    store_shared(log_sum, INFINITY);
    store_shared(row_dot, 0.0f);
  }
}

template <class Number, int width>
__global__ void __launch_bounds__(QueryTiles<width>::threads, QueryTiles<width>::blocks)
    tiled_query_gradient(PackedShape shape, GradientOperands<Number> operands) {
  using Tiles = QueryTiles<width>;
  constexpr int columns = Tiles::walked / 8;
  const int tiles = (shape.tokens + Tiles::owned - 1) / Tiles::owned;
  const HeadOffsets at(shape, blockIdx.x / tiles);
  const HeadRows<Number> head(shape, operands, at);
  // The last queries see most keys, so their blocks start first.
  const int block_query = (tiles - 1 - static_cast<int>(blockIdx.x) % tiles) * Tiles::owned;
  const int row_in_block = static_cast<int>(threadIdx.x) / 32 * rows_of_warp;
  const int first_query = block_query + row_in_block;
  const GradientMemory<Tiles> memory{shared_memory()};
  const Tile<width> queries = memory.owned(0), d_outs = memory.owned(1);
  const auto copy = [&](int tile) {
    copy_pair<Tiles::walked, Tiles::threads>(memory.walked(tile, 0), head.keys,
                                             memory.walked(tile, 1), head.values,
                                             tile * Tiles::walked, shape.tokens);
  };
  copy_pair<Tiles::owned, Tiles::threads>(queries, head.queries, d_outs, head.d_outs, block_query,
                                          shape.tokens);
  copy(0);

  float offsets[2], row_dots[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = first_query + sum_row(2 * half);
    offsets[half] = query < shape.tokens ? head.log_sums[query] * log2_of_e : INFINITY;
    row_dots[half] = query < shape.tokens ? head.row_dots[query] : 0.0f;
  }
  const float exponent_scale = shape.scale * log2_of_e;
  float d_queries[width / 8][4] = {};
  const int seen = shape.keys_of(block_query + Tiles::owned - 1);
  const int key_tiles = (seen + Tiles::walked - 1) / Tiles::walked;
  for (int tile = 0; tile < key_tiles; ++tile) {
    // After the barrier all copies of this tile have arrived, and no thread still reads the
    // previous tile.
    wait_for_copies();
    __syncthreads();
    if (tile + 1 < key_tiles) copy(tile + 1);
    const int first_key = tile * Tiles::walked;
    if (first_key >= shape.keys_of(first_query + rows_of_warp - 1)) continue;
    const Tile<width> keys = memory.walked(tile, 0), values = memory.walked(tile, 1);
    float scores[columns][4] = {}, d_weights[columns][4] = {};
    multiply_by_rows<Number>(
        scores, [&](int step) { return left_factors(queries, row_in_block, step); }, keys);
    multiply_by_rows<Number>(
        d_weights, [&](int step) { return left_factors(d_outs, row_in_block, step); }, values);
    const bool hides = first_key + Tiles::walked > shape.keys_of(first_query);
#pragma unroll
    for (int n = 0; n < columns; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float weight = power_of_two(scores[n][i] * exponent_scale - offsets[i / 2]);
        const bool hidden =
            hides && first_key + sum_column(n, i) >= shape.keys_of(first_query + sum_row(i));
        scores[n][i] = hidden ? 0.0f : weight * (d_weights[n][i] - row_dots[i / 2]);
      }
    }
    multiply_by_columns<Number, width>(d_queries, scores, keys);
  }
  const float factors[2] = {shape.scale, shape.scale};
  store_rows(d_queries, factors, queries, row_in_block,
             operands.d_qkv + at.queries + first_query * shape.qkv_columns, shape.qkv_columns,
             shape.tokens - first_query);
}

// Scores have keys as rows and queries as columns, so that weights and their gradients are left
// factors without transposition. The block goes through all heads of queries that share its keys,
// one after another, so that their sums have one order.
template <class Number, int width>
__global__ void __launch_bounds__(KeyTiles<width>::threads, KeyTiles<width>::blocks)
    tiled_key_gradient(PackedShape shape, GradientOperands<Number> operands) {
  using Tiles = KeyTiles<width>;
  constexpr int columns = Tiles::walked / 8;
  const int tiles = (shape.tokens + Tiles::owned - 1) / Tiles::owned;
  const int first_head = static_cast<int>(blockIdx.x) / tiles * shape.sharing;
  const std::int64_t stride = shape.qkv_columns;
  // Most queries see the first keys, so their blocks start first; the block number is the tile
  // number.
  const int block_key = static_cast<int>(blockIdx.x) % tiles * Tiles::owned;
  const int row_in_block = static_cast<int>(threadIdx.x) / 32 * rows_of_warp;
  const int first_key = block_key + row_in_block;
  const int block_query = shape.first_query_of(block_key);
  const GradientMemory<Tiles> memory{shared_memory()};
  const Tile<width> keys = memory.owned(0), values = memory.owned(1);
  const HeadRows<Number> shared(shape, operands, HeadOffsets(shape, first_head));
  copy_pair<Tiles::owned, Tiles::threads>(keys, shared.keys, values, shared.values, block_key,
                                          shape.tokens);

  const float exponent_scale = shape.scale * log2_of_e;
  float d_keys[width / 8][4] = {}, d_values[width / 8][4] = {};
  const int query_tiles = (shape.tokens - block_query + Tiles::walked - 1) / Tiles::walked;
  for (int i = 0; i < shape.sharing; ++i) {
    const HeadRows<Number> head(shape, operands, HeadOffsets(shape, first_head + i));
    const auto copy = [&](int tile) {
      const int first = block_query + tile * Tiles::walked;
      copy_pair<Tiles::walked, Tiles::threads>(memory.walked(tile, 0), head.queries,
                                               memory.walked(tile, 1), head.d_outs, first,
                                               shape.tokens);
      const int row = threadIdx.x;
      if (row >= Tiles::walked) return;
      copy_statistics(head, first + row, shape.tokens, memory.statistics(tile, 0) + row * 4,
                      memory.statistics(tile, 1) + row * 4);
    };
    // After the barrier no thread still reads a tile of the previous head.
    __syncthreads();
    copy(0);
    for (int tile = 0; tile < query_tiles; ++tile) {
      // After the barrier all copies of this tile have arrived, and no thread still reads the
      // previous tile.
      wait_for_copies();
      __syncthreads();
      if (tile + 1 < query_tiles) copy(tile + 1);
      const int first_query = block_query + tile * Tiles::walked;
      if (first_query + Tiles::walked <= shape.first_query_of(first_key)) continue;
      const Tile<width> queries = memory.walked(tile, 0), d_outs = memory.walked(tile, 1);
      const int lane_column = sum_column(0, 0) * 4;

      float weights[columns][4] = {};
      multiply_by_rows<Number>(
          weights, [&](int step) { return left_factors(keys, row_in_block, step); }, queries);
      const bool hides = first_query < shape.first_query_of(first_key + rows_of_warp - 1);
#pragma unroll
      for (int n = 0; n < columns; ++n) {
        const float2 log_sums = load_shared_pair(memory.statistics(tile, 0) + lane_column + n * 32);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float offset = (i % 2 == 0 ? log_sums.x : log_sums.y) * log2_of_e;
          const bool hidden = hides && first_key + sum_row(i) > first_query + sum_column(n, i);
          weights[n][i] = hidden ? 0.0f : power_of_two(weights[n][i] * exponent_scale - offset);
        }
      }
      multiply_by_columns<Number, width>(d_values, weights, d_outs);

      float d_weights[columns][4] = {};
      multiply_by_rows<Number>(
          d_weights, [&](int step) { return left_factors(values, row_in_block, step); }, d_outs);
#pragma unroll
      for (int n = 0; n < columns; ++n) {
        const float2 row_dots = load_shared_pair(memory.statistics(tile, 1) + lane_column + n * 32);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          weights[n][i] *= d_weights[n][i] - (i % 2 == 0 ? row_dots.x : row_dots.y);
        }
      }
      multiply_by_columns<Number, width>(d_keys, weights, queries);
    }
  }
  const float of_scores[2] = {shape.scale, shape.scale}, whole[2] = {1.0f, 1.0f};
  const HeadOffsets at(shape, first_head);
  Number* d_rows = operands.d_qkv + first_key * stride;
  const int count = shape.tokens - first_key;
  store_rows(d_keys, of_scores, keys, row_in_block, d_rows + at.keys, stride, count);
  store_rows(d_values, whole, values, row_in_block, d_rows + at.values, stride, count);
}

}  // namespace stepgate
