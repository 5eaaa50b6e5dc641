// SPDX-License-Identifier: MIT
// Causal self-attention of packed heads, softmax(Q K^T / sqrt(D)) V, without the matrix of scores
// in memory (Dao: FlashAttention-2, 2023).
//   shape     rows = N tokens, whole sequences one behind the other; columns = C = H * D;
//             depth = T, the length of a sequence; groups = H heads
//   operands  qkv ([N][3C]: a row is q | k | v, head h at columns h * D of each), out ([N][C]),
//             log_sums (fp32 [N / T][H][T]: natural logarithm of the sum of the exponentials of a
//             row's scaled scores)
// A token sees itself and those before it, (T + 1) / 2 on average, each at 2 D multiply-adds a
// head: 2 * N * C * (T + 1) flops; softmax counts as nothing. Products in tf32 are those of fp32.
// In CUDA builds operands must be aligned to 16 bytes and D may be 512 at most; bf16 and fp16 use
// tensor cores where D is 64 or 128.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Attention {
  static constexpr std::string_view name = "attention";
  using Attributes = NoAttributes;
};

}  // namespace kernels

std::vector<Kernel> attention_kernels();

// Only in CUDA builds.
Launch prepare_attention(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
