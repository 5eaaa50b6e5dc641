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

#include "kernels/attention/cudnn/cudnn_attention.h"
#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct AttentionGradient {
  static constexpr std::string_view name = "attention_gradient";
  struct Attributes {
    std::int64_t most_scratch = 0;  // bytes that cuDNN may have; 0: our own kernel
  };
};

}  // namespace kernels

// So many sequences at once are given to cuDNN, whose gradient with sums in a fixed order has the
// scores of all of them in its scratch: an equal share of all, as large as fits. 0 where cuDNN has
// no such gradient, or one sequence does not fit.
constexpr std::int64_t sequences_for_cudnn(const KernelShape& shape, DType dtype,
                                           std::int64_t most_scratch) {
  if (!suits_cudnn(shape, dtype)) return 0;
  const std::int64_t all = shape.rows / shape.depth;
  for (std::int64_t parts = 1; parts <= all; ++parts) {
    if (all % parts != 0) continue;
    KernelShape share = shape;
    share.rows = shape.rows / parts;
    if (cudnn_attention_gradient_scratch(share) <= most_scratch) return all / parts;
  }
  return 0;
}

// Bytes of the scratch operand: the row dots, one fp32 a token and head, or what cuDNN wants for
// its share.
constexpr std::int64_t attention_gradient_scratch_bytes(const KernelShape& shape, DType dtype,
                                                        std::int64_t most_scratch) {
  const std::int64_t dots = rounded_up(checked(shape).rows * shape.groups * 4, 256);
  KernelShape share = shape;
  share.rows = sequences_for_cudnn(shape, dtype, most_scratch) * shape.depth;
  const std::int64_t of_cudnn = share.rows > 0 ? cudnn_attention_gradient_scratch(share) : 0;
  return dots > of_cudnn ? dots : of_cudnn;
}

std::vector<Kernel> attention_gradient_kernels();

// Only in CUDA builds.
Launch prepare_attention_gradient(const KernelShape&, DType, const KernelAttributes&,
                                  const LaunchContext&);

}  // namespace stepgate
