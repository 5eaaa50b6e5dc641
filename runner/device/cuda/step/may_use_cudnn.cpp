// SPDX-License-Identifier: MIT
#include "device/cuda/step/may_use_cudnn.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/attention/cudnn/cudnn_attention.h"
#include "kernels/catalogue.h"
#include "kernels/convolution/convolution.h"

namespace stepgate {

namespace {

bool is_convolution(const LaunchKernel& launch) {
  return launch.shape.holds<ConvolutionShape>();
}

bool is_suited_attention(const LaunchKernel& launch) {
  return kernel(launch.kernel).library.is_attention &&
         suits_cudnn(launch.shape.to<AttentionShape>(), launch.dtype);
}

template <class Condition>
bool launches_any(const StepPlan& plan, Condition condition) {
  return std::ranges::any_of(plan.operations, [&](const Operation& operation) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    return launch != nullptr && condition(*launch);
  });
}

}  // namespace

bool may_use_cudnn(const StepPlan& plan) {
  return needs_cudnn(plan) || launches_any(plan, is_suited_attention);
}

bool needs_cudnn(const StepPlan& plan) {
  return launches_any(plan, is_convolution);
}

std::string refusal_without_cudnn(std::string_view unavailable_reason) {
  return fmt::format(
      "convolutions on a GPU are cuDNN's, and {}; install cuDNN 9, or say --device "
      "simulated",
      unavailable_reason);
}

}  // namespace stepgate
