// SPDX-License-Identifier: MIT
// Attention as one kernel, and the softmax for attention that is composed of GEMMs. Launchers exist
// only in CUDA builds.
#pragma once

#include "kernels/attention/attention_shape.h"
#include "kernels/attention/cudnn/cudnn_attention.h"
#include "kernels/kernel.h"

namespace stepgate {

// Whether attention's kernels of this project's own multiply with tensor cores.
constexpr bool attention_uses_tensor_cores(const AttentionShape& shape, DType dtype) {
  const std::int64_t width = shape.columns / shape.heads;
  return is_16_bit(dtype) && (width == 64 || width == 128);
}

namespace kernels {

// Self-attention of packed heads, softmax(Q K^T / sqrt(D)) V, without the matrix of scores in
// memory (Dao: FlashAttention-2, 2023).
//   shape     rows = N tokens, whole sequences one behind the other; columns = C = H * D;
//             tokens = T, the length of a sequence; heads = H; kv_heads = G
//   operands  qkv ([N][C + 2 G D]: a row is q | k | v, head h at columns h * D of each; head h of q
//             meets head h / (H / G) of k and v), out ([N][C]), log_sums (fp32 [N / T][H][T]:
//             natural logarithm of the sum of the exponentials of a row's scaled scores)
// A token sees all tokens of its sequence, or where `causal` itself and those before it, (T + 1) /
// 2 on average. Each is 2 D multiply-adds a head: 4 * N * C * T flops, or 2 * N * C * (T + 1).
// Softmax counts as nothing. Products in tf32 are those of fp32. In CUDA builds operands must be
// aligned to 16 bytes and D may be 512 at most; bf16 and fp16 use tensor cores where D is 64 or
// 128.
struct Attention {
  static constexpr std::string_view name = "attention";
  using Shape = AttentionShape;
  struct Attributes {
    static constexpr std::string_view names = "causal";
    bool causal = true;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Gradient of `attention` with respect to qkv, from what the forward launch left: the probabilities
// are computed again from qkv and log_sums (Dao: FlashAttention-2, 2023, algorithm 2).
//   shape     as attention's: rows = N, columns = C = H * D, tokens = T, heads = H, kv_heads = G
//   operands  qkv ([N][C + 2 G D]), out ([N][C]), d_out ([N][C]), log_sums (fp32 [N / T][H][T]),
//             scratch (attention_gradient_scratch_bytes), d_qkv (as qkv)
// With P = softmax(S), S = Q K^T / sqrt(D), and r the row dots of d_out and out:
//   dV = P^T dO;  dS = P (dO V^T - r);  dQ = dS K / sqrt(D);  dK = dS^T Q / sqrt(D)
// where dK and dV of a shared head are sums over the heads of queries that share it. These are five
// products where the forward has two: flops = 2.5 times attention's. Sums are in an order of the
// shape alone, unless `any_order` allows cuDNN another one in every launch; our own kernels and the
// host reference keep theirs. In CUDA builds, what attention.h says of alignment and D.
struct AttentionGradient {
  static constexpr std::string_view name = "attention_gradient";
  using Shape = AttentionShape;
  struct Attributes {
    static constexpr std::string_view names = "most_scratch any_order causal";
    std::int64_t most_scratch = 0;  // bytes that cuDNN may have; 0: our own kernel
    bool any_order = false;         // whether cuDNN's sums may have any order
    bool causal = true;

    constexpr SumOrder order() const { return any_order ? SumOrder::any : SumOrder::fixed; }
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// The share of the gradient's flops that a model needs: one of its five products computes the
// scores again.
inline constexpr double needed_of_attention_gradient = 4.0 / 5;

// Divides `all` into as few shares as fit, of nearly equal counts, and returns the largest: 7 of 13
// where at most 12 fit. Returns 0 if not even one fits. fits(n) implies fits(n - 1).
template <class Fits>
constexpr std::int64_t largest_equal_share(std::int64_t all, Fits fits) {
  std::int64_t most = 0, too_many = all + 1;
  while (most + 1 < too_many) {
    const std::int64_t middle = most + (too_many - most) / 2;
    (fits(middle) ? most : too_many) = middle;
  }
  const auto ceiling = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  return most == 0 ? 0 : ceiling(all, ceiling(all, most));
}

// The part of the gradient that one launch of cuDNN computes. Its scratch has something for each
// sequence and head, the scores where sums have a fixed order. There are as few launches as the
// scratch allows, of equally many sequences, or of equally many heads of one sequence if a whole
// one does not fit. The last launch may have fewer. The share has no rows where cuDNN has no such
// gradient, or one head of keys and the heads of queries that share it do not fit.
constexpr AttentionShape share_for_cudnn(const AttentionShape& shape, DType dtype,
                                         std::int64_t most_scratch,
                                         SumOrder order = SumOrder::fixed) {
  const auto fits = [&](std::int64_t sequences, std::int64_t kv_heads) {
    return cudnn_attention_gradient_scratch(part_of(shape, sequences, kv_heads), order) <=
           most_scratch;
  };
  AttentionShape none = shape;
  none.rows = 0;
  if (!suits_cudnn(shape, dtype)) return none;
  const std::int64_t sequences = largest_equal_share(
      shape.rows / shape.tokens, [&](std::int64_t count) { return fits(count, shape.kv_heads); });
  if (sequences > 0) return part_of(shape, sequences, shape.kv_heads);
  const std::int64_t kv_heads =
      largest_equal_share(shape.kv_heads, [&](std::int64_t count) { return fits(1, count); });
  return kv_heads > 0 ? part_of(shape, 1, kv_heads) : none;
}

// Bytes of the scratch operand: the row dots (one fp32 per token and head), or the bytes that cuDNN
// needs for its share.
constexpr std::int64_t attention_gradient_scratch_bytes(const AttentionShape& shape, DType dtype,
                                                        std::int64_t most_scratch,
                                                        SumOrder order = SumOrder::fixed) {
  const std::int64_t dots = rounded_up(checked(shape).rows * shape.heads * 4, 256);
  const AttentionShape share = share_for_cudnn(shape, dtype, most_scratch, order);
  const std::int64_t of_cudnn = share.rows > 0 ? cudnn_attention_gradient_scratch(share, order) : 0;
  return dots > of_cudnn ? dots : of_cudnn;
}

namespace kernels {

// Softmax of each row of square matrices of scores up to its diagonal: a token sees itself and
// those before it.
//   shape     rows = G * T, of G matrices; columns = T
//   operands  scores ([G][T][T]), probabilities ([G][T][T]; may be scores)
// Row r of a matrix is softmax(scale * scores[r][0 .. r]), then zeros. A row's visible part counts
// 5 flops an element (scale, subtract, exponential, sum, divide), (T + 1) / 2 elements on average.
// The CUDA side reads no score behind the diagonal.
struct CausalSoftmax {
  static constexpr std::string_view name = "causal_softmax";
  using Shape = MatrixShape;
  struct Attributes {
    static constexpr std::string_view names = "scale";
    double scale = 1;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Gradient of causal_softmax with respect to its scores.
//   shape     rows = G * T, of G matrices; columns = T
//   operands  probabilities ([G][T][T]), d_probabilities ([G][T][T]), d_scores ([G][T][T]; may be
//             d_probabilities)
// d_scores[r][c] = scale * p[r][c] * (dp[r][c] - sum over the visible i of p[r][i] * dp[r][i]) for
// c <= r, else 0. A row's visible part counts 5 flops an element (multiply-add, subtract, two
// multiplications), (T + 1) / 2 elements on average. The CUDA side reads nothing behind the
// diagonal.
struct CausalSoftmaxGradient {
  static constexpr std::string_view name = "causal_softmax_gradient";
  using Shape = MatrixShape;
  using Attributes = CausalSoftmax::Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Softmax of whole rows, for attention in which every token sees all others, and its gradient:
//   p[r][c] = exp(scale s[r][c]) / sum over i of exp(scale s[r][i])
//   d_s[r][c] = scale p[r][c] (d_p[r][c] - sum over i of p[r][i] d_p[r][i])
//   softmax    softmax_gradient
//   shape     rows, columns
//   operands  softmax: scores, probabilities (may be scores)
//             softmax_gradient: probabilities, d_probabilities, d_scores (may be d_probabilities)
struct Softmax {
  static constexpr std::string_view name = "softmax";
  using Shape = MatrixShape;
  using Attributes = CausalSoftmax::Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct SoftmaxGradient {
  static constexpr std::string_view name = "softmax_gradient";
  using Shape = MatrixShape;
  using Attributes = CausalSoftmax::Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

std::vector<Kernel> attention_kernels();

}  // namespace stepgate
