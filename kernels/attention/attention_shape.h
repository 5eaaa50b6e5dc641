// SPDX-License-Identifier: MIT
// The sizes of attention, whose heads of queries may share heads of keys and of values.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/kernel.h"

namespace stepgate {

// Rows are whole sequences of `tokens` rows each, one after another. The H heads of queries have
// `columns` numbers in a row together, D each. Each of the `kv_heads` heads of keys and of values
// is shared by H / kv_heads neighbouring heads of queries (Ainslie et al.: GQA, 2023).
template <class Size>
struct AttentionSizes {
  static constexpr std::string_view names = "rows columns tokens heads kv_heads";
  Size rows = 1;
  Size columns = 1;
  Size tokens = 1;
  Size heads = 1;
  Size kv_heads = heads;  // a divisor of the heads; as many, if none is given

  bool operator==(const AttentionSizes&) const = default;
};
using AttentionShape = AttentionSizes<std::int64_t>;

// The numbers of a row of q | k | v.
template <class Size>
constexpr Size qkv_columns(const AttentionSizes<Size>& shape) {
  return shape.columns + 2 * (shape.kv_heads * (shape.columns / shape.heads));
}

// The part of the shape that has this many sequences and heads of keys, with the heads of queries
// that share these.
constexpr AttentionShape part_of(AttentionShape shape, std::int64_t sequences,
                                 std::int64_t kv_heads) {
  const std::int64_t head_size = shape.columns / shape.heads;
  shape.rows = sequences * shape.tokens;
  shape.heads = shape.heads / shape.kv_heads * kv_heads;
  shape.columns = shape.heads * head_size;
  shape.kv_heads = kv_heads;
  return shape;
}

}  // namespace stepgate
