// SPDX-License-Identifier: MIT
// Rows of packed heads to one matrix a head: what batched products of attention take.
//   shape     rows = N tokens, whole sequences one behind the other; columns = C = H * D;
//             depth = T, the length of a sequence; groups = H heads
//   operands  rows ([N][parts * C], head h of a part at columns h * D), heads ([parts][N /
//   T][H][T][D])
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct SplitHeads {
  static constexpr std::string_view name = "split_heads";
  struct Attributes {
    std::int64_t parts = 1;  // 3 for q | k | v, 1 for one of them
  };
};

}  // namespace kernels

std::vector<Kernel> split_heads_kernels();

// Only in CUDA builds.
Launch prepare_split_heads(const KernelShape&, DType, const KernelAttributes&,
                           const LaunchContext&);

}  // namespace stepgate
