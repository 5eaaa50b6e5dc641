// SPDX-License-Identifier: MIT
// The inverse of split_heads: one matrix a head to rows of packed heads.
//   shape     rows = N tokens, whole sequences one behind the other; columns = C = H * D;
//             depth = T, the length of a sequence; groups = H heads
//   operands  heads ([parts][N / T][H][T][D]), rows ([N][parts * C], head h of a part at columns h
//   * D)
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace merge_heads_scalar {
constexpr std::size_t parts = 0;  // 3 for q | k | v, 1 for one of them
}

Kernel merge_heads_kernel();

// Only in CUDA builds.
Launch prepare_merge_heads(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
