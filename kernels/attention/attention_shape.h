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

}  // namespace stepgate
