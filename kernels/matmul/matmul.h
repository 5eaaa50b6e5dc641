// SPDX-License-Identifier: MIT
// Matrix product, row-major: C[M,N] = op(A) op(B), or C += op(A) op(B).
//   shape     rows = M; columns = N; depth = K; groups = how many such products, each operand's
//             matrices one behind the other
//   operands  a ([M][K], or [K][M] when transposed), b ([K][N], or [N][K]), c ([M][N])
// c is read only when accumulating. In CUDA builds operands must be aligned to 16 bytes.
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace matmul_scalar {
constexpr std::size_t transpose_a = 0;
constexpr std::size_t transpose_b = 1;
constexpr std::size_t accumulate = 2;
}  // namespace matmul_scalar

Kernel matmul_kernel();

// Only in CUDA builds.
Launch prepare_matmul(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
