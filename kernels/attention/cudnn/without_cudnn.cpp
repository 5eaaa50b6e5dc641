// SPDX-License-Identifier: MIT
// The interface of cudnn_attention.h where the build had no headers of cuDNN: nothing can be
// opened, so the rest is never reached with a Cudnn.
#include "kernels/attention/cudnn/cudnn_attention.h"

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

std::optional<Launch> cudnn_attention(Cudnn&, const PackedHeadsShape&, DType, std::string* reason) {
  *reason = absent;
  return std::nullopt;
}

std::optional<Launch> cudnn_attention_gradient(Cudnn&, const PackedHeadsShape&, DType, std::int64_t,
                                               std::string* reason, SumOrder) {
  *reason = absent;
  return std::nullopt;
}

std::optional<std::int64_t> cudnn_attention_gradient_bytes(Cudnn&, const PackedHeadsShape&, DType,
                                                           std::string* reason, SumOrder) {
  *reason = absent;
  return std::nullopt;
}

std::optional<std::int64_t> cudnn_attention_bytes(Cudnn&, const PackedHeadsShape&, DType,
                                                  std::string* reason) {
  *reason = absent;
  return std::nullopt;
}

}  // namespace stepgate
