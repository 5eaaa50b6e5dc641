// SPDX-License-Identifier: MIT
// Kernels that rearrange the heads of attention, or rotate them by their positions. Launchers exist
// only in CUDA builds.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// Copies rows of packed heads to one matrix per head, as batched GEMMs of attention need them.
//   shape     rows = N tokens, whole sequences one after another; columns = C = H * D; tokens = T,
//             the length of a sequence; heads = H
//   operands  rows ([N][parts * C], head h of a part at columns h * D), heads ([parts][N /
//             T][H][T][D])
struct SplitHeads {
  static constexpr std::string_view name = "split_heads";
  using Shape = PackedHeadsShape;
  struct Attributes {
    static constexpr std::string_view names = "parts";
    std::int64_t parts = 1;  // 3 for q | k | v, 1 for one of them
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The inverse of split_heads: copies one matrix per head to rows of packed heads.
//   shape     rows = N tokens, whole sequences one after another; columns = C = H * D; tokens = T,
//             the length of a sequence; heads = H
//   operands  heads ([parts][N / T][H][T][D]), rows ([N][parts * C], head h of a part at columns h
//             * D)
struct MergeHeads {
  static constexpr std::string_view name = "merge_heads";
  using Shape = PackedHeadsShape;
  using Attributes = SplitHeads::Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Grouped-query attention (Ainslie et al.: GQA, 2023), for attention composed of GEMMs, which take
// equally many heads of queries, keys and values. Each of the G heads of keys and values is
// repeated for the H / G heads of queries that share it.
//   repeat_heads    repeat_heads_gradient
//   shape     rows = N tokens; columns = C = H D, width of the queries; heads = H, of queries
//   operands  repeat_heads: grouped ([N][C + 2 G D], each row H heads of queries, G of keys, G of
//             values), rows ([N][3 C]: q | k | v, where head h of k and v is grouped head h / (H /
//             G))
//             repeat_heads_gradient: d_rows, d_grouped; each shared head gets the sum over its
//               copies, in their order
struct RepeatHeads {
  static constexpr std::string_view name = "repeat_heads";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "rows columns heads";
    Size rows = 1;
    Size columns = 1;
    Size heads = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    static constexpr std::string_view names = "kv_heads";
    std::int64_t kv_heads = 1;  // G, of which H is a multiple
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct RepeatHeadsGradient {
  static constexpr std::string_view name = "repeat_heads_gradient";
  using Shape = RepeatHeads::Shape;
  using Attributes = RepeatHeads::Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Rotary position embedding (Su et al.: RoFormer, 2021, section 3.2.2). The halves of a head form
// the pairs, as in Llama of Hugging Face's Transformers. In the token at position t, numbers i and
// i + D/2 of a head are rotated together by the angle a = t base^(-2 i / D).
//   x[i], x[i + D/2]  become  x[i] cos a - x[i + D/2] sin a,  x[i + D/2] cos a + x[i] sin a
//   shape     rows = N tokens, whole sequences one after another; columns = numbers of a row;
//             tokens = T, the length of a sequence; heads = number of rotated heads, from the start
//             of a row; in q | k | v those of the queries and the keys
//   operands  rows [N][columns], in place
struct Rope {
  static constexpr std::string_view name = "rope";
  using Shape = PackedHeadsShape;
  struct Attributes {
    static constexpr std::string_view names = "width base inverse";
    std::int64_t width = 2;  // D, even; at most 256 on a GPU
    double base = 10000;     // at least 1
    bool inverse = false;    // rotates by -a, which is the transpose and so the gradient
  };
  // Exists only in CUDA builds. Throws std::runtime_error for heads wider than 256.
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

std::vector<Kernel> heads_kernels();

}  // namespace stepgate
