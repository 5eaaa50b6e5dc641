// SPDX-License-Identifier: MIT
// The first activations of a transformer: x[n] = table[tokens[n]] + positions[n mod T], or without
// positions, where attention turns queries and keys instead (rope.h): x[n] = table[tokens[n]].
//   embedding    token_embedding
//   shape     rows = tokens; columns = C; depth = V, rows of the table; groups = T, positions
//   operands  embedding: tokens (int32 [rows], each in [0, V)), table [V][C], positions [T][C],
//             x [rows][C]
//             token_embedding: tokens, table, x
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Embedding {
  static constexpr std::string_view name = "embedding";
  using Attributes = NoAttributes;
};

struct TokenEmbedding {
  static constexpr std::string_view name = "token_embedding";
  using Attributes = NoAttributes;
};

}  // namespace kernels

std::vector<Kernel> embedding_kernels();

// Only in CUDA builds.
Launch prepare_embedding(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);
Launch prepare_token_embedding(const KernelShape&, DType, const KernelAttributes&,
                               const LaunchContext&);

}  // namespace stepgate
