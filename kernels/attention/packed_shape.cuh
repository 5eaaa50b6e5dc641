// SPDX-License-Identifier: MIT
// Device side of packed heads: the sizes of a launch and the rows of a head in the operands.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/kernel.h"

namespace stepgate {

struct PackedShape {
  int tokens;  // of a sequence
  int heads;
  int width;  // D
  std::int64_t columns;
  std::int64_t sequences;
  float scale;  // of the scores
  bool causal;  // a token does not see those behind it

  PackedShape(const PackedHeadsShape& shape, bool is_causal)
      : tokens(static_cast<int>(shape.tokens)),
        heads(static_cast<int>(shape.heads)),
        width(static_cast<int>(shape.columns / shape.heads)),
        columns(shape.columns),
        sequences(shape.rows / shape.tokens),
        scale(static_cast<float>(1 / std::sqrt(static_cast<double>(width)))),
        causal(is_causal) {}

  // The number of keys that a query sees, the first ones.
  __device__ int keys_of(int query) const { return causal ? min(query + 1, tokens) : tokens; }
  // The first query that sees the key.
  __device__ int first_query_of(int key) const { return causal ? key : 0; }
};

// Offsets of head `index`, counted over all sequences, at its first token. Rows of qkv are 3 C
// apart, rows of out C.
struct HeadOffsets {
  std::int64_t qkv;
  std::int64_t out;
  std::int64_t log_sums;

  __device__ HeadOffsets(const PackedShape& shape, std::int64_t index) {
    const std::int64_t first_token = index / shape.heads * shape.tokens;
    const std::int64_t column = index % shape.heads * shape.width;
    qkv = first_token * 3 * shape.columns + column;
    out = first_token * shape.columns + column;
    log_sums = index * shape.tokens;
  }
};

}  // namespace stepgate
