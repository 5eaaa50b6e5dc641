// SPDX-License-Identifier: MIT
// Kernels that put the heads of attention in other places, or turn them by their positions.
// Launchers are in CUDA builds alone.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// Rows of packed heads to one matrix a head: what batched products of attention take.
//   shape     rows = N tokens, whole sequences one behind the other; columns = C = H * D;
//             depth = T, the length of a sequence; groups = H heads
//   operands  rows ([N][parts * C], head h of a part at columns h * D), heads ([parts][N /
//   T][H][T][D])
struct SplitHeads {
  static constexpr std::string_view name = "split_heads";
  struct Attributes {
    std::int64_t parts = 1;  // 3 for q | k | v, 1 for one of them
  };
};

}  // namespace kernels

Launch prepare_split_heads(const KernelShape&, DType, const KernelAttributes&,
                           const LaunchContext&);

namespace kernels {

// The inverse of split_heads: one matrix a head to rows of packed heads.
//   shape     rows = N tokens, whole sequences one behind the other; columns = C = H * D;
//             depth = T, the length of a sequence; groups = H heads
//   operands  heads ([parts][N / T][H][T][D]), rows ([N][parts * C], head h of a part at columns h
//   * D)
struct MergeHeads {
  static constexpr std::string_view name = "merge_heads";
  using Attributes = SplitHeads::Attributes;
};

}  // namespace kernels

Launch prepare_merge_heads(const KernelShape&, DType, const KernelAttributes&,
                           const LaunchContext&);

namespace kernels {

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

Launch prepare_repeat_heads(const KernelShape&, DType, const KernelAttributes&,
                            const LaunchContext&);
Launch prepare_repeat_heads_gradient(const KernelShape&, DType, const KernelAttributes&,
                                     const LaunchContext&);

namespace kernels {

// Rotary position embedding (Su et al.: RoFormer, 2021, section 3.2.2), with the halves of a head
// as pairs, as Llama has them in Hugging Face's Transformers: numbers i and i + D/2 of a head of
// the token at position t turn together by the angle a = t base^(-2 i / D).
//   x[i], x[i + D/2]  become  x[i] cos a - x[i + D/2] sin a,  x[i + D/2] cos a + x[i] sin a
//   shape     rows = N tokens, whole sequences one behind the other; columns = numbers of a row;
//             depth = T, the length of a sequence; groups = heads that turn: the first of a row,
//             which are the queries' and the keys' where it is q | k | v
//   operands  rows [N][columns], in place
struct Rope {
  static constexpr std::string_view name = "rope";
  struct Attributes {
    std::int64_t width = 2;  // D, even; at most 256 on a GPU
    double base = 10000;     // at least 1
    bool inverse = false;    // by -a: the transpose of that turn, hence its gradient
  };
};

}  // namespace kernels

// Only in CUDA builds. Throws std::runtime_error for heads wider than 256.
Launch prepare_rope(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

std::vector<Kernel> heads_kernels();

}  // namespace stepgate
