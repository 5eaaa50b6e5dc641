// SPDX-License-Identifier: MIT
// Indices of numbers of q | k | v in rows whose keys and values have fewer heads, on the host and
// on a GPU. heads.h has the meaning and shapes.
#pragma once

#include <cstdint>

#include "kernels/heads/heads.h"

namespace stepgate {

// Index is the type of an element's index; 32 bits, where they suffice, divide several times as
// fast on a GPU.
template <class Index>
struct GroupedRows {
  Index rows;
  Index columns;     // C
  Index width;       // D
  Index kv_columns;  // G D
  Index sharing;     // query heads per key head

  constexpr Index grouped_columns() const { return columns + 2 * kv_columns; }
  constexpr Index elements() const { return rows * 3 * columns; }
  constexpr Index grouped_elements() const { return rows * grouped_columns(); }

  // The index in grouped rows of the element that is repeated as element i of rows of q | k | v.
  constexpr Index grouped(Index i) const {
    const Index row = i / (3 * columns), column = i % (3 * columns);
    const Index first = row * grouped_columns();
    if (column < columns) return first + column;
    const Index part = column / columns - 1, head = column % columns / width;
    return first + columns + part * kv_columns + head / sharing * width + column % width;
  }

  // The index of the first copy of element i of grouped rows. Keys and values have further copies,
  // each `width` elements after the one before.
  constexpr Index first_repeated(Index i) const {
    const Index row = i / grouped_columns(), column = i % grouped_columns();
    const Index first = row * 3 * columns;
    if (column < columns) return first + column;
    const Index part = (column - columns) / kv_columns;
    const Index head = (column - columns) % kv_columns / width;
    return first + (part + 1) * columns + head * sharing * width + column % width;
  }
  constexpr Index repetitions(Index i) const {
    return i % grouped_columns() < columns ? 1 : sharing;
  }
};

template <class Index>
GroupedRows<Index> grouped_rows(const kernels::RepeatHeads::Shape& shape,
                                const kernels::RepeatHeads::Attributes& attributes) {
  const std::int64_t kv_heads = attributes.kv_heads;
  const std::int64_t width = shape.columns / shape.heads;
  return {static_cast<Index>(shape.rows), static_cast<Index>(shape.columns),
          static_cast<Index>(width), static_cast<Index>(kv_heads * width),
          static_cast<Index>(shape.heads / kv_heads)};
}

}  // namespace stepgate
