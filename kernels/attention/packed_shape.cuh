// SPDX-License-Identifier: MIT
// Device side of packed heads: the sizes of a launch and the rows of a head in the operands.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/attention/attention_shape.h"

namespace stepgate {

struct PackedShape {
  int tokens;  // of a sequence
  int heads;
  int kv_heads;
  int sharing;               // heads of queries for each head of keys and of values
  int width;                 // D
  std::int64_t columns;      // of a row of out
  std::int64_t qkv_columns;  // of a row of qkv
  std::int64_t sequences;
  float scale;  // of the scores
  bool causal;  // a token does not see those behind it

  PackedShape(const AttentionShape& shape, bool is_causal)
      : tokens(static_cast<int>(shape.tokens)),
        heads(static_cast<int>(shape.heads)),
        kv_heads(static_cast<int>(shape.kv_heads)),
        sharing(heads / kv_heads),
        width(static_cast<int>(shape.columns / shape.heads)),
        columns(shape.columns),
        qkv_columns(stepgate::qkv_columns(shape)),
        sequences(shape.rows / shape.tokens),
        scale(static_cast<float>(1 / std::sqrt(static_cast<double>(width)))),
        causal(is_causal) {}

  // The number of keys that a query sees, the first ones.
  __device__ int keys_of(int query) const { return causal ? min(query + 1, tokens) : tokens; }
  // The first query that sees the key.
  __device__ int first_query_of(int key) const { return causal ? key : 0; }
};

// Offsets of head `index` of the queries, counted over all sequences, at its first token: of its
// queries and of the keys and values that it meets in qkv, and in out.
struct HeadOffsets {
  std::int64_t queries, keys, values;
  std::int64_t out;
  std::int64_t log_sums;

  __device__ HeadOffsets(const PackedShape& shape, std::int64_t index) {
    const std::int64_t first_token = index / shape.heads * shape.tokens;
    const std::int64_t head = index % shape.heads;
    const std::int64_t first_row = first_token * shape.qkv_columns;
    queries = first_row + head * shape.width;
    keys = first_row + shape.columns + head / shape.sharing * shape.width;
    values = keys + shape.kv_heads * shape.width;
    out = first_token * shape.columns + head * shape.width;
    log_sums = index * shape.tokens;
  }
};

}  // namespace stepgate
