// SPDX-License-Identifier: MIT
#include "kernels/attention/cudnn/choose_cudnn.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "kernels/attention/attention.h"

namespace stepgate {
namespace {

// The reason why cuDNN is not used for attention of this shape; empty where it is used.
std::string reason_against_shape(const AttentionShape& shape, DType dtype) {
  switch (cudnn_fit(shape, dtype)) {
    case CudnnFit::suits:
      return {};
    case CudnnFit::not_16_bit:
      return "cuDNN has attention of 16-bit numbers only";
    case CudnnFit::part_of_a_tile:
      return "cuDNN is asked for samples of whole tiles of " + std::to_string(cudnn_tile) +
             " tokens only, and these have " + std::to_string(shape.tokens);
    case CudnnFit::wide_heads:
      return "cuDNN is asked for heads of at most " + std::to_string(widest_cudnn_head) +
             " columns only, and these have " + std::to_string(shape.columns / shape.heads);
  }
  return {};
}

// The reason why cuDNN is not used for a gradient with so much scratch; empty where it is used.
std::string reason_against_gradient(const AttentionShape& shape, DType dtype,
                                    std::int64_t most_scratch, SumOrder order) {
  std::string reason = reason_against_shape(shape, dtype);
  if (!reason.empty() || sequences_for_cudnn(shape, dtype, most_scratch, order) > 0) return reason;
  if (most_scratch == 0) return "model.attention_workspace is 0 B";
  AttentionShape sample = shape;
  sample.rows = shape.tokens;
  return "model.attention_workspace is " + std::to_string(most_scratch) +
         " B, and cuDNN's gradient of one sample takes " +
         std::to_string(cudnn_attention_gradient_scratch(sample, order)) + " B";
}

// Returns the launch that `make` creates, or nullopt where there is a reason against it or no
// library. If `make` returns nothing, it writes its own reason. `remark` says what is special about
// the library's launch.
template <class Make>
std::optional<Launch> choose(const char* kernel, std::string reason, const LaunchContext& context,
                             Make make, const char* remark = "") {
  std::optional<Launch> launch;
  if (reason.empty()) {
    reason = context.cudnn_unavailable_reason;
    if (context.dnn != nullptr) launch = make(*context.dnn, &reason);
  }
  KernelChoice choice{.kernel = kernel, .library = {}, .reason = {}};
  if (launch) {
    choice.library = "cuDNN " + version_of(*context.dnn);
    choice.reason = remark;
  } else {
    choice.reason = std::move(reason);
  }
  record_choice(context, std::move(choice));
  return launch;
}

std::optional<Launch> gradient_in_shares(Cudnn& cudnn, const AttentionShape& shape, DType dtype,
                                         std::int64_t most_scratch, SumOrder order,
                                         std::string* reason, bool causal) {
  AttentionShape share = shape;
  share.rows = sequences_for_cudnn(shape, dtype, most_scratch, order) * shape.tokens;
  const auto launch = cudnn_attention_gradient(
      cudnn, share, dtype, attention_gradient_scratch_bytes(shape, dtype, most_scratch, order),
      reason, order, causal);
  if (!launch) return std::nullopt;
  const std::int64_t matrix = share.rows * share.columns * bytes_of(dtype);
  const std::int64_t qkv = share.rows * qkv_columns(share) * bytes_of(dtype);
  // The bytes of each operand, in the order qkv, out, d_out, log_sums, scratch, d_qkv.
  const std::array<std::int64_t, 6> bytes = {qkv, matrix, matrix, share.rows * share.heads * 4,
                                             0,   qkv};
  return [launch = *launch, bytes, shares = shape.rows / share.rows](void* const* buffers,
                                                                     CUstream_st* stream) {
    for (std::int64_t part = 0; part < shares; ++part) {
      std::array<void*, 6> of_part{};
      for (std::size_t i = 0; i < bytes.size(); ++i)
        of_part[i] = static_cast<std::byte*>(buffers[i]) + part * bytes[i];
      launch(of_part.data(), stream);
    }
  };
}

}  // namespace

std::optional<Launch> attention_by_cudnn(const AttentionShape& shape, DType dtype,
                                         const LaunchContext& context, bool causal) {
  if (!is_16_bit(dtype)) return std::nullopt;
  return choose("attention", reason_against_shape(shape, dtype), context,
                [&](Cudnn& cudnn, std::string* reason) {
                  return cudnn_attention(cudnn, shape, dtype, reason, causal);
                });
}

std::optional<Launch> attention_gradient_by_cudnn(const AttentionShape& shape, DType dtype,
                                                  std::int64_t most_scratch, SumOrder order,
                                                  const LaunchContext& context, bool causal) {
  if (!is_16_bit(dtype)) return std::nullopt;
  return choose(
      "attention_gradient", reason_against_gradient(shape, dtype, most_scratch, order), context,
      [&](Cudnn& cudnn, std::string* reason) {
        return gradient_in_shares(cudnn, shape, dtype, most_scratch, order, reason, causal);
      },
      order == SumOrder::any ? "its sums have any order" : "");
}

}  // namespace stepgate
