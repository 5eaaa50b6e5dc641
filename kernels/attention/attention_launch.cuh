// SPDX-License-Identifier: MIT
// Grids, limits and attributes that the launchers of attention and of its gradient share.
#pragma once

#include "kernels/attention/rows_of_warps.cuh"
#include "kernels/launch.cuh"

namespace stepgate {

// A warp a row.
inline unsigned blocks_for_rows(const KernelShape& shape) {
  return static_cast<unsigned>(ceiling_quotient(shape.rows * shape.groups, row_warps));
}

// A block a tile of a head of a sequence.
inline unsigned blocks_for_tiles(const KernelShape& shape, int tile_rows) {
  const std::int64_t heads = shape.rows / shape.depth * shape.groups;
  return static_cast<unsigned>(heads * ceiling_quotient(shape.depth, tile_rows));
}

inline void require_width(const char* kernel, std::int64_t width) {
  if (width <= widest_head) return;
  throw std::runtime_error(std::string(kernel) + ": a head has " + std::to_string(width) +
                           " numbers, more than " + std::to_string(widest_head));
}

template <class... Pointer>
void require_alignment(const char* kernel, const Pointer*... operands) {
  if (aligned_to_access(operands...)) return;
  throw std::runtime_error(std::string(kernel) + ": an operand is not aligned to 16 bytes");
}

// Dynamic shared memory beyond 48 KiB has to be asked for.
template <class Function>
void require_shared_memory(const char* kernel, Function* function, int bytes,
                           const LaunchContext& context) {
  if (take_shared_memory(kernel, function, bytes, Carveout::as_it_is, context)) return;
  throw std::runtime_error(std::string(kernel) + ": needs " + std::to_string(bytes) +
                           " bytes of shared memory a block, of which this GPU has " +
                           std::to_string(most_dynamic_shared_bytes(function, context)));
}

}  // namespace stepgate
