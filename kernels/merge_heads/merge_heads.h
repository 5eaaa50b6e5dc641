// SPDX-License-Identifier: MIT
// The inverse of split_heads: one matrix a head to rows of packed heads.
//   shape     rows = N tokens, whole sequences one behind the other; columns = C = H * D;
//             depth = T, the length of a sequence; groups = H heads
//   operands  heads ([parts][N / T][H][T][D]), rows ([N][parts * C], head h of a part at columns h
//   * D)
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct MergeHeads {
  static constexpr std::string_view name = "merge_heads";
  struct Attributes {
    std::int64_t parts = 1;  // 3 for q | k | v, 1 for one of them
  };
};

}  // namespace kernels

std::vector<Kernel> merge_heads_kernels();

// Only in CUDA builds.
Launch prepare_merge_heads(const KernelShape&, DType, const KernelAttributes&,
                           const LaunchContext&);

}  // namespace stepgate
