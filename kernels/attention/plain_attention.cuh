// SPDX-License-Identifier: MIT
// Attention without tensor cores: one warp per query.
#pragma once

#include <cfloat>

#include "kernels/attention/packed_shape.cuh"
#include "kernels/attention/rows_of_warps.cuh"

namespace stepgate {

template <class Number>
__global__ void __launch_bounds__(32 * row_warps)
    plain_attention(PackedShape shape, const Number* qkv, Number* out, float* log_sums) {
  __shared__ TurningSpace spaces[row_warps];
  __shared__ float all_sums[row_warps][widest_head];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * row_warps + warp;
  if (row >= shape.sequences * shape.heads * shape.tokens) return;
  const int token = static_cast<int>(row % shape.tokens);
  const HeadOffsets at(shape, row / shape.tokens);
  const std::int64_t stride = shape.qkv_columns;
  const Number* query = qkv + at.queries + token * stride;
  const RowsOfHead<Number> keys{qkv + at.keys, stride, shape.width};
  const RowsOfHead<Number> values{qkv + at.values, stride, shape.width};
  float* sums = all_sums[warp];
  clear_sums(sums, shape.width);

  float largest = -FLT_MAX, sum = 0.0f;
  const int seen = shape.keys_of(token);
  for (int first = 0; first < seen; first += 32) {
    const int count = min(32, seen - first);
    const float dot = dot_with_rows(query, keys, first, count, spaces[warp]);
    const float score = lane < count ? dot * shape.scale : -FLT_MAX;
    float larger = fmaxf(largest, score);
    for (int i = 16; i > 0; i /= 2) larger = fmaxf(larger, __shfl_xor_sync(all_lanes, larger, i));
    const float weight = lane < count ? expf(score - larger) : 0.0f;
    float weights = weight;
    for (int i = 16; i > 0; i /= 2) weights += __shfl_xor_sync(all_lanes, weights, i);
    const float keep = expf(largest - larger);
    sum = keep * sum + weights;
    largest = larger;
    add_rows(sums, keep, weight, values, first, count);
  }
  store_sums(sums, 1.0f / sum, out + at.out + token * shape.columns, shape.width);
  if (lane == 0) log_sums[at.log_sums + token] = largest + logf(sum);
}

}  // namespace stepgate
