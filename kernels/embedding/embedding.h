// SPDX-License-Identifier: MIT
// Lookups of table rows by index, and their gradients. Launchers exist only in CUDA builds.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// The first activations of a transformer: x[n] = table[tokens[n]] + positions[n mod T]. Models
// without positions, where attention rotates queries and keys instead (heads.h), have x[n] =
// table[tokens[n]].
//   embedding    token_embedding
//   shape     rows = tokens; columns = C; table_rows = V; of embedding also positions = T
//   operands  embedding: tokens (int32 [rows], each in [0, V)), table [V][C], positions [T][C], x
//             [rows][C]
//             token_embedding: tokens, table, x
struct Embedding {
  static constexpr std::string_view name = "embedding";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "rows columns table_rows positions";
    Size rows = 1;
    Size columns = 1;
    Size table_rows = 1;
    Size positions = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct TokenEmbedding {
  static constexpr std::string_view name = "token_embedding";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "rows columns table_rows";
    Size rows = 1;
    Size columns = 1;
    Size table_rows = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The gradient of embedding in its table: d_table[v] += sum of dx[n] over all n with tokens[n] = v.
// The gradient of the positions is a sum of columns, which bias_gradient computes from dx as a
// matrix of [samples][T C].
//   shape     rows = tokens; columns = C; table_rows = V
//   operands  tokens (int32 [rows], each in [0, V)), dx [rows][C], d_table [V][C]
// One warp sums a row of the table in the order of its tokens, so that two runs agree to the bit
// without a sort. The kernel suits tokens that are spread over the table. The rows of one token are
// read one after another, so a thousand equal tokens take a thousand latencies of memory. Each of
// up to 1056 blocks reads every token, and compares only its own tokens with each other.
struct EmbeddingGradient {
  static constexpr std::string_view name = "embedding_gradient";
  using Shape = TokenEmbedding::Shape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

std::vector<Kernel> embedding_kernels();

}  // namespace stepgate
