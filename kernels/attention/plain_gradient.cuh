// SPDX-License-Identifier: MIT
// The gradient of attention without tensor cores: one warp per query for dQ, one warp per key for
// dK and dV, which goes through all heads of queries that share the key.
#pragma once

#include "kernels/attention/packed_shape.cuh"
#include "kernels/attention/rows_of_warps.cuh"

namespace stepgate {

template <class Number>
struct GradientOperands {
  const Number* qkv;
  const Number* d_out;
  const float* log_sums;
  const float* row_dots;
  Number* d_qkv;
};

// The operand rows of one head.
template <class Number>
struct HeadRows {
  RowsOfHead<Number> queries, keys, values, d_outs;
  const float* log_sums;
  const float* row_dots;

  __device__ HeadRows(const PackedShape& shape, const GradientOperands<Number>& operands,
                      const HeadOffsets& at)
      : queries{operands.qkv + at.queries, shape.qkv_columns, shape.width},
        keys{operands.qkv + at.keys, shape.qkv_columns, shape.width},
        values{operands.qkv + at.values, shape.qkv_columns, shape.width},
        d_outs{operands.d_out + at.out, shape.columns, shape.width},
        log_sums(operands.log_sums + at.log_sums),
        row_dots(operands.row_dots + at.log_sums) {}
};

template <class Number>
__global__ void __launch_bounds__(32 * row_warps)
    plain_query_gradient(PackedShape shape, GradientOperands<Number> operands) {
  __shared__ TurningSpace spaces[row_warps];
  __shared__ float all_sums[row_warps][widest_head];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * row_warps + warp;
  if (row >= shape.sequences * shape.heads * shape.tokens) return;
  const int token = static_cast<int>(row % shape.tokens);
  const HeadOffsets at(shape, row / shape.tokens);
  const HeadRows<Number> head(shape, operands, at);
  const Number* query = head.queries.row(token);
  const Number* d_out = head.d_outs.row(token);
  float* sums = all_sums[warp];
  clear_sums(sums, shape.width);

  const int seen = shape.keys_of(token);
  for (int first = 0; first < seen; first += 32) {
    const int count = min(32, seen - first);
    const float score = dot_with_rows(query, head.keys, first, count, spaces[warp]) * shape.scale;
    const float d_weight = dot_with_rows(d_out, head.values, first, count, spaces[warp]);
    const float weight = lane < count ? expf(score - head.log_sums[token]) : 0.0f;
    const float d_score = weight * (d_weight - head.row_dots[token]);
    add_rows(sums, 1.0f, d_score, head.keys, first, count);
  }
  store_sums(sums, shape.scale, operands.d_qkv + at.queries + token * shape.qkv_columns,
             shape.width);
}

template <class Number>
__global__ void __launch_bounds__(32 * row_warps)
    plain_key_gradient(PackedShape shape, GradientOperands<Number> operands) {
  __shared__ TurningSpace spaces[row_warps];
  __shared__ float all_sums[row_warps][2][widest_head];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * row_warps + warp;
  if (row >= shape.sequences * shape.kv_heads * shape.tokens) return;
  const int token = static_cast<int>(row % shape.tokens);
  const std::int64_t first_head = row / shape.tokens * shape.sharing;
  float* d_key = all_sums[warp][0];
  float* d_value = all_sums[warp][1];
  clear_sums(d_key, shape.width);
  clear_sums(d_value, shape.width);

  for (int i = 0; i < shape.sharing; ++i) {
    const HeadRows<Number> head(shape, operands, HeadOffsets(shape, first_head + i));
    const Number* key = head.keys.row(token);
    const Number* value = head.values.row(token);
    for (int first = shape.first_query_of(token); first < shape.tokens; first += 32) {
      const int count = min(32, shape.tokens - first);
      const int query = min(first + lane, shape.tokens - 1);
      const float score =
          dot_with_rows(key, head.queries, first, count, spaces[warp]) * shape.scale;
      const float d_weight = dot_with_rows(value, head.d_outs, first, count, spaces[warp]);
      const float weight = lane < count ? expf(score - head.log_sums[query]) : 0.0f;
      const float d_score = weight * (d_weight - head.row_dots[query]);
      add_rows(d_value, 1.0f, weight, head.d_outs, first, count);
      add_rows(d_key, 1.0f, d_score, head.queries, first, count);
    }
  }
  const HeadOffsets at(shape, first_head);
  Number* d_row = operands.d_qkv + token * shape.qkv_columns;
  store_sums(d_key, shape.scale, d_row + at.keys, shape.width);
  store_sums(d_value, 1.0f, d_row + at.values, shape.width);
}

// Dot products of the rows of two [N][C] operands, one per token and head. `lanes` neighbouring
// threads share a row, so that a warp reads neighbouring addresses.
template <int count, int lanes, class Number>
__global__ void __launch_bounds__(256)
    row_dots(PackedShape shape, const Number* first, const Number* second, float* dots) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * 256 + threadIdx.x) / lanes;
  const bool exists = row < shape.sequences * shape.tokens * shape.heads;
  float sum = 0.0f;
  if (exists) {
    for (int i = threadIdx.x % lanes * count; i < shape.width; i += lanes * count) {
      const auto a = load<count>(first, row * shape.width + i);
      const auto b = load<count>(second, row * shape.width + i);
#pragma unroll
      for (int j = 0; j < count; ++j) sum += to_float(a.values[j]) * to_float(b.values[j]);
    }
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(all_lanes, sum, distance);
  }
  if (!exists || threadIdx.x % lanes != 0) return;
  const std::int64_t token = row / shape.heads;
  const std::int64_t head = token / shape.tokens * shape.heads + row % shape.heads;
  dots[head * shape.tokens + token % shape.tokens] = sum;
}

}  // namespace stepgate
