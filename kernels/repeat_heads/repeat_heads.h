// SPDX-License-Identifier: MIT
// Grouped-query attention (Ainslie et al.: GQA, 2023) for attention that has as many heads of keys
// and values as of queries: each of its G heads of keys and values is repeated for the H / G heads
// of queries that share it.
//   repeat_heads    repeat_heads_gradient
//   shape     rows = N tokens; columns = C = H D, numbers of a row's queries; groups = H heads of
//             queries
//   operands  repeat_heads: grouped ([N][C + 2 G D], of each row H heads of queries, G of keys, G
//             of values), rows ([N][3 C]: q | k | v, head h of k and v is head h / (H / G) there)
//             repeat_heads_gradient: d_rows, d_grouped; of the heads that share one their sum, in
//             their order
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct RepeatHeads {
  static constexpr std::string_view name = "repeat_heads";
  struct Attributes {
    std::int64_t kv_heads = 1;  // G, of which H is a multiple
  };
};

struct RepeatHeadsGradient {
  static constexpr std::string_view name = "repeat_heads_gradient";
  using Attributes = RepeatHeads::Attributes;
};

}  // namespace kernels

std::vector<Kernel> repeat_heads_kernels();

// Only in CUDA builds.
Launch prepare_repeat_heads(const KernelShape&, DType, const KernelAttributes&,
                            const LaunchContext&);
Launch prepare_repeat_heads_gradient(const KernelShape&, DType, const KernelAttributes&,
                                     const LaunchContext&);

}  // namespace stepgate
