// SPDX-License-Identifier: MIT
// Host side of packed heads: the index of each number of a head of a sequence. The references use
// it.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/number_format.h"

namespace stepgate {

// The numbers of a head of one sequence as [T][D].
using HeadNumbers = std::vector<double>;

// The place of a head in each row.
struct HeadColumns {
  std::int64_t first;  // column of the head's first number
  std::int64_t row;    // numbers of a row
};

struct PackedHeads {
  std::int64_t tokens;  // of a sequence
  std::int64_t sequences;
  std::int64_t heads;
  std::int64_t width;  // D

  // The shape is that of a kernel with packed heads, such as PackedHeadsShape.
  template <class Shape>
  explicit PackedHeads(const Shape& shape)
      : tokens(shape.tokens),
        sequences(shape.rows / shape.tokens),
        heads(shape.heads),
        width(shape.columns / shape.heads) {}

  double scale() const { return 1 / std::sqrt(static_cast<double>(width)); }

  // The place of a head in rows of `parts` parts of C numbers each.
  HeadColumns columns(std::int64_t head, std::int64_t part = 0, std::int64_t parts = 1) const {
    return {(part * heads + head) * width, parts * heads * width};
  }

  HeadNumbers read(const void* rows, DType dtype, std::int64_t sequence,
                   const HeadColumns& head) const {
    HeadNumbers numbers;
    for (std::int64_t token = 0; token < tokens; ++token) {
      const std::int64_t first = (sequence * tokens + token) * head.row + head.first;
      for (std::int64_t i = 0; i < width; ++i) numbers.push_back(number_at(rows, dtype, first + i));
    }
    return numbers;
  }

  void write(const HeadNumbers& numbers, void* rows, DType dtype, std::int64_t sequence,
             const HeadColumns& head) const {
    for (std::int64_t token = 0; token < tokens; ++token) {
      const std::int64_t first = (sequence * tokens + token) * head.row + head.first;
      for (std::int64_t i = 0; i < width; ++i) {
        set_number(rows, dtype, first + i, numbers[token * width + i]);
      }
    }
  }

  // Computes products[j] = first . second[j] for the first `count` tokens of `second`, which is
  // stored as [D][T], so that a compiler can vectorise over j.
  void multiply(const double* first, const HeadNumbers& second_turned, std::int64_t count,
                std::vector<double>& products) const {
    products.assign(static_cast<std::size_t>(count), 0.0);
    for (std::int64_t i = 0; i < width; ++i) {
      const double factor = first[i];
      const double* row = second_turned.data() + i * tokens;
      for (std::int64_t j = 0; j < count; ++j) products[j] += factor * row[j];
    }
  }

  HeadNumbers turned(const HeadNumbers& numbers) const {
    HeadNumbers result(numbers.size());
    for (std::int64_t token = 0; token < tokens; ++token) {
      for (std::int64_t i = 0; i < width; ++i) {
        result[i * tokens + token] = numbers[token * width + i];
      }
    }
    return result;
  }

  // Computes to[token] += factor * from[other].
  void add(HeadNumbers& to, std::int64_t token, double factor, const HeadNumbers& from,
           std::int64_t other) const {
    double* sums = to.data() + token * width;
    const double* numbers = from.data() + other * width;
    for (std::int64_t i = 0; i < width; ++i) sums[i] += factor * numbers[i];
  }
};

// Visits the matrices [T][D] that split_heads produces and merge_heads reads, in the order in which
// they are stored. Calls visit(sequence, columns of the head, index of the matrix's first number).
template <class Visit>
void for_each_matrix(const PackedHeads& heads, std::int64_t parts, const Visit& visit) {
  std::int64_t first = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t s = 0; s < heads.sequences; ++s) {
      for (std::int64_t h = 0; h < heads.heads; ++h) {
        visit(s, heads.columns(h, part, parts), first);
        first += heads.tokens * heads.width;
      }
    }
  }
}

}  // namespace stepgate
