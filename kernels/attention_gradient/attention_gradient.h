// SPDX-License-Identifier: MIT
// Gradient of `attention` with respect to qkv, from what the forward launch left: the probabilities
// are computed again from qkv and log_sums (Dao: FlashAttention-2, 2023, algorithm 2).
//   shape     as attention's: rows = N, columns = C = H * D, depth = T, groups = H
//   operands  qkv ([N][3C]), out ([N][C]), d_out ([N][C]), log_sums (fp32 [N / T][H][T]),
//             scratch (attention_gradient_scratch_bytes), d_qkv ([N][3C])
// With P = softmax(S), S = Q K^T / sqrt(D), and r the row dots of d_out and out:
//   dV = P^T dO;  dS = P (dO V^T - r);  dQ = dS K / sqrt(D);  dK = dS^T Q / sqrt(D)
// which are five products where the forward has two: flops = 2.5 times attention's. Sums are in an
// order of the shape alone. In CUDA builds, what attention.h says of alignment and D.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

// Bytes of the scratch operand: the row dots, one fp32 a token and head.
constexpr std::int64_t attention_gradient_scratch_bytes(const KernelShape& shape) {
  return (shape.rows * shape.groups * 4 + 255) / 256 * 256;
}

Kernel attention_gradient_kernel();

// Only in CUDA builds.
Launch prepare_attention_gradient(const KernelShape&, DType, const KernelScalars&,
                                  const LaunchContext&);

}  // namespace stepgate
