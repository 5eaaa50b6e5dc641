// SPDX-License-Identifier: MIT
// The first of two stages of the norm of all gradients: partials[p] is the sum of squares of the
// p-th piece of the numbers. clip makes the second. The order of a sum depends on the sizes and the
// alignment of the gradients alone.
//   shape     columns numbers, depth pieces (square_sum_pieces is how many a GPU wants)
//   operands  gradients ([columns]), partials (fp32 [depth])
// A square that overflows fp32 makes its piece infinite, and clip skips the update.
#pragma once

#include <algorithm>

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct SquareSums {
  static constexpr std::string_view name = "square_sums";
  using Attributes = NoAttributes;
};

}  // namespace kernels

// 12 blocks for each of 132 multiprocessors, two rounds of what fits, so that the second evens out
// what the first left; and no piece so small that starting its block costs more than reading it.
constexpr std::int64_t square_sum_pieces(std::int64_t count) {
  constexpr std::int64_t most = 12 * 132;
  constexpr std::int64_t smallest_piece = 4096;
  return std::clamp<std::int64_t>((count + smallest_piece - 1) / smallest_piece, 1, most);
}

// Numbers of every piece but the last ones, which may be shorter or empty: a multiple of 8, so that
// all pieces of an aligned operand are aligned.
constexpr std::int64_t square_sum_piece(const KernelShape& shape) {
  const std::int64_t share = (shape.columns + shape.depth - 1) / shape.depth;
  return (share + 7) / 8 * 8;
}

std::vector<Kernel> square_sums_kernels();

// Only in CUDA builds.
Launch prepare_square_sums(const KernelShape&, DType, const KernelAttributes&,
                           const LaunchContext&);

}  // namespace stepgate
