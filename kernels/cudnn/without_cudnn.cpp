// SPDX-License-Identifier: MIT
// Implements open_cudnn.h and what is made with cuDNN in a build without cuDNN's headers. Opening
// the library always fails, so the other functions are never called.
#include "kernels/attention/cudnn/cudnn_attention.h"
#include "kernels/convolution/cudnn/cudnn_convolution.h"

namespace stepgate {
namespace {

constexpr const char* absent = "this build had no headers of cuDNN";

}  // namespace

std::shared_ptr<Cudnn> open_cudnn(std::string* reason) {
  *reason = absent;
  return nullptr;
}

std::string version_of(const Cudnn&) {
  return {};
}

std::optional<Launch> cudnn_attention(Cudnn&, const AttentionShape&, DType, std::string* reason,
                                      bool) {
  *reason = absent;
  return std::nullopt;
}

std::optional<Launch> cudnn_attention_gradient(Cudnn&, const AttentionShape&, const AttentionShape&,
                                               DType, std::int64_t, std::string* reason, SumOrder,
                                               bool) {
  *reason = absent;
  return std::nullopt;
}

std::optional<std::int64_t> cudnn_attention_gradient_bytes(Cudnn&, const AttentionShape&, DType,
                                                           std::string* reason, SumOrder) {
  *reason = absent;
  return std::nullopt;
}

std::optional<std::int64_t> cudnn_attention_bytes(Cudnn&, const AttentionShape&, DType,
                                                  std::string* reason) {
  *reason = absent;
  return std::nullopt;
}

std::optional<Launch> cudnn_convolution(Cudnn&, const ConvolutionRequest&, void*, std::int64_t,
                                        std::string* reason, const ChooseLaunch&) {
  *reason = absent;
  return std::nullopt;
}

std::vector<std::int64_t> operand_elements(const ConvolutionRequest&) {
  return {};
}

}  // namespace stepgate
