// SPDX-License-Identifier: MIT
// Attention by cuDNN 9, causal or not: absent or unwilling, it says why, and nothing else depends
// on it. Knows no cuDNN types; cudnn/graph.h turns graphs into plans.
//   shape     rows N = B*T, columns C = H*D, tokens T, heads H, kv_heads G; T divides N, H divides
//             C, G divides H
//   operands  qkv [N][C + 2GD], a row is q | k | v, head h of each at columns h*D, head h of q with
//             head h / (H / G) of k and v; out and d_out [N][C]; log_sums fp32 [B][H][T], natural
//             logarithms of the sums of exponentials of the scores; d_qkv as qkv. All aligned to 16
//             bytes. bf16 and fp16 only, the scale 1 / sqrt(D).
// A launch throws std::runtime_error where cuDNN refuses it. It keeps the library open and has its
// own workspace, so launches of it must follow each other, as on one stream. Plans are made once
// and stay as long as the library; the same refusal is given twice.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kernels/attention/attention_shape.h"
#include "kernels/cudnn/open_cudnn.h"
#include "kernels/kernel.h"

namespace stepgate {

// Whether cuDNN suits the shape. Older versions have gradients only of sequences of whole tiles;
// for other sequences forward and gradient both use our own kernels.
enum class CudnnFit { suits, not_16_bit, part_of_a_tile, wide_heads };
constexpr std::int64_t cudnn_tile = 128;         // tokens
constexpr std::int64_t widest_cudnn_head = 128;  // columns
constexpr CudnnFit cudnn_fit(const AttentionShape& shape, DType dtype) {
  if (!is_16_bit(dtype)) return CudnnFit::not_16_bit;
  if (shape.tokens % cudnn_tile != 0) return CudnnFit::part_of_a_tile;
  if (shape.columns / shape.heads > widest_cudnn_head) return CudnnFit::wide_heads;
  return CudnnFit::suits;
}
constexpr bool suits_cudnn(const AttentionShape& shape, DType dtype) {
  return cudnn_fit(shape, dtype) == CudnnFit::suits;
}

// The order in which the gradient of q is summed: `fixed` gives the same bits twice and needs 2
// bytes of workspace for each score (B*H*T*T); `any` needs 4 bytes for each number of q.
enum class SumOrder { fixed, any };

// A launch on (qkv, out, log_sums); nullopt where cuDNN has none, and *reason then says why.
std::optional<Launch> cudnn_attention(Cudnn&, const AttentionShape&, DType, std::string* reason,
                                      bool causal = true);

// A launch on (qkv, out, d_out, log_sums, scratch, d_qkv) of the whole shape, which cuDNN processes
// in shares, one after another: of its sequences, or of the heads of one sequence. The last one may
// be smaller. nullopt where cuDNN has none, or needs more than scratch_bytes for a share; *reason
// then says why, with both numbers of bytes. The scratch is aligned to 256 bytes.
std::optional<Launch> cudnn_attention_gradient(Cudnn&, const AttentionShape& whole,
                                               const AttentionShape& share, DType,
                                               std::int64_t scratch_bytes, std::string* reason,
                                               SumOrder order = SumOrder::fixed,
                                               bool causal = true);

// Bytes of scratch that cudnn_attention_gradient needs with cuDNN 9.19 on Hopper, for plans that
// are made without cuDNN. They hold the row dots, the sums of `any` or the padded scores of
// `fixed`, the gradients of shared heads before they are added up, and a few bytes more.
constexpr std::int64_t cudnn_attention_gradient_scratch(const AttentionShape& shape,
                                                        SumOrder order = SumOrder::fixed) {
  const AttentionSizes<CheckedSize> all = checked(shape);
  const CheckedSize sequences = all.rows / all.tokens * all.heads;
  const CheckedSize scores = sequences * rounded_up(all.tokens, 64) * rounded_up(all.tokens, 128);
  const CheckedSize large = order == SumOrder::fixed ? 2 * scores : 4 * all.rows * all.columns;
  const CheckedSize shared =
      shape.kv_heads == shape.heads ? CheckedSize() : 2 * (4 * all.rows * all.columns);
  return rounded_up(4 * all.rows * all.heads, 256) + rounded_up(large, 256) +
         rounded_up(shared, 256) + 256;
}

// The scratch bytes that the loaded cuDNN needs for the shape at once. Creates the plan if there is
// none yet, which is slow.
std::optional<std::int64_t> cudnn_attention_gradient_bytes(Cudnn&, const AttentionShape&, DType,
                                                           std::string* reason,
                                                           SumOrder order = SumOrder::fixed);

// Bytes of workspace that a launch of cudnn_attention allocates for itself.
std::optional<std::int64_t> cudnn_attention_bytes(Cudnn&, const AttentionShape&, DType,
                                                  std::string* reason);

}  // namespace stepgate
