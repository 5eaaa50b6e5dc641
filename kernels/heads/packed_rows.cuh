// SPDX-License-Identifier: MIT
// Moves numbers between rows of packed heads and one matrix a head; the two directions are
// split_heads' and merge_heads'.
#pragma once

#include "kernels/launch.cuh"

namespace stepgate {

constexpr int packed_threads = 128;
constexpr int packed_rows = 8;  // of a block: so many accesses are in flight a thread

struct PackedRows {
  std::int64_t rows;
  std::int64_t columns;  // of a part
  int parts;
  int tokens;
  int heads;
};

// A thread keeps its columns, so that where they belong is worked out once for all its rows.
template <int count, class Number, class Move>
__global__ void __launch_bounds__(packed_threads)
    move_packed_rows(PackedRows shape, const Number* from, Number* to, Move move) {
  const std::int64_t row_columns = shape.parts * shape.columns;
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.y) * packed_threads + threadIdx.x) * count;
  if (column >= row_columns) return;
  const int width = static_cast<int>(shape.columns / shape.heads);
  const std::int64_t part = column / shape.columns;
  const std::int64_t head = column % shape.columns / width;
  const std::int64_t within = column % width;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * packed_rows;
  std::int64_t sequence = first_row / shape.tokens;
  std::int64_t token = first_row % shape.tokens;
  const std::int64_t sequences = shape.rows / shape.tokens;

  Pack<Number, count> packs[packed_rows];
  std::int64_t targets[packed_rows];
#pragma unroll
  for (int i = 0; i < packed_rows; ++i) {
    const std::int64_t in_rows = (first_row + i) * row_columns + column;
    const std::int64_t matrix = (part * sequences + sequence) * shape.heads + head;
    const std::int64_t in_matrices = (matrix * shape.tokens + token) * width + within;
    targets[i] = move.to(in_rows, in_matrices);
    if (first_row + i < shape.rows) packs[i] = load<count>(from, move.from(in_rows, in_matrices));
    if (++token == shape.tokens) {
      token = 0;
      ++sequence;
    }
  }
#pragma unroll
  for (int i = 0; i < packed_rows; ++i) {
    if (first_row + i < shape.rows) store(to, targets[i], packs[i]);
  }
}

// A launch of `kernel` from its first operand to its second.
template <class Move>
Launch packed_rows_launch(const char* kernel, const KernelShape& shape, DType dtype,
                          std::int64_t parts, Move move) {
  const PackedRows sizes{shape.rows, shape.columns, static_cast<int>(parts),
                         static_cast<int>(shape.depth), static_cast<int>(shape.groups)};
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* from = static_cast<const Number*>(buffers[0]);
      auto* to = static_cast<Number*>(buffers[1]);
      const bool packs = sizes.columns / sizes.heads % count == 0 && aligned_to_access(from, to);
      auto* const moving =
          packs ? move_packed_rows<count, Number, Move> : move_packed_rows<1, Number, Move>;
      const std::int64_t columns = sizes.parts * sizes.columns / (packs ? count : 1);
      const dim3 blocks(static_cast<unsigned>(ceiling_quotient(sizes.rows, packed_rows)),
                        static_cast<unsigned>(ceiling_quotient(columns, packed_threads)));
      moving<<<blocks, packed_threads, 0, stream>>>(sizes, from, to, move);
      check_launch(kernel);
    };
  });
}

}  // namespace stepgate
