// SPDX-License-Identifier: MIT
#include "kernels/attention/cudnn/choose_cudnn.h"

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
  if (!reason.empty() || share_for_cudnn(shape, dtype, most_scratch, order).rows > 0) return reason;
  if (most_scratch == 0) return "model.attention_workspace is 0 B";
  const AttentionShape least = part_of(shape, 1, 1);
  return "model.attention_workspace is " + std::to_string(most_scratch) +
         " B, and cuDNN's gradient of one sample's " +
         (least.heads == 1 ? "head" : std::to_string(least.heads) + " heads of equal keys") +
         " takes " + std::to_string(cudnn_attention_gradient_scratch(least, order)) + " B";
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
        const std::int64_t scratch =
            attention_gradient_scratch_bytes(shape, dtype, most_scratch, order);
        const AttentionShape share = share_for_cudnn(shape, dtype, most_scratch, order);
        return cudnn_attention_gradient(cudnn, shape, share, dtype, scratch, reason, order, causal);
      },
      order == SumOrder::any ? "its sums have any order" : "");
}

}  // namespace stepgate
