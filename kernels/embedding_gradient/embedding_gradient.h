// SPDX-License-Identifier: MIT
// The gradient of embedding in its table: d_table[v] += sum of dx[n] over all n with tokens[n] = v.
// The positions' gradient is a sum of columns, bias_gradient's: of dx as a matrix of [samples][T
// C].
//   shape     rows = tokens; columns = C; depth = V, rows of the table
//   operands  tokens (int32 [rows], each in [0, V)), dx [rows][C], d_table [V][C]
// A row of the table is summed in the order of its tokens, by one warp, so that two runs agree to
// the bit without a sort: many tokens of one value take long (a value that is a tenth of all
// tokens, as long as all others together).
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

Kernel embedding_gradient_kernel();

// Only in CUDA builds.
Launch prepare_embedding_gradient(const KernelShape&, DType, const KernelScalars&,
                                  const LaunchContext&);

}  // namespace stepgate
