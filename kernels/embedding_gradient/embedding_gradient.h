// SPDX-License-Identifier: MIT
// The gradient of embedding in its table: d_table[v] += sum of dx[n] over all n with tokens[n] = v.
// The positions' gradient is a sum of columns, bias_gradient's: of dx as a matrix of [samples][T
// C].
//   shape     rows = tokens; columns = C; depth = V, rows of the table
//   operands  tokens (int32 [rows], each in [0, V)), dx [rows][C], d_table [V][C]
// A row of the table is summed in the order of its tokens, by one warp, so that two runs agree to
// the bit without a sort. Meant for tokens that are spread over the table: the rows of one value
// are read one after another, so that a thousand equal tokens take a thousand latencies of memory.
// Every one of up to 1056 blocks looks at every token, and compares those that fall to it with each
// other.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct EmbeddingGradient {
  static constexpr std::string_view name = "embedding_gradient";
  using Attributes = NoAttributes;
};

}  // namespace kernels

std::vector<Kernel> embedding_gradient_kernels();

// Only in CUDA builds.
Launch prepare_embedding_gradient(const KernelShape&, DType, const KernelAttributes&,
                                  const LaunchContext&);

}  // namespace stepgate
