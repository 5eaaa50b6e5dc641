// SPDX-License-Identifier: MIT
#include "device/cuda/step/may_use_cudnn.h"

#include <algorithm>

#include "kernels/attention/cudnn/cudnn_attention.h"
#include "kernels/catalogue.h"
#include "kernels/convolution/convolution.h"

namespace stepgate {

bool may_use_cudnn(const StepPlan& plan) {
  return std::any_of(plan.operations.begin(), plan.operations.end(),
                     [](const Operation& operation) {
                       const auto* launch = std::get_if<LaunchKernel>(&operation.action);
                       if (launch == nullptr) return false;
                       if (launch->shape.holds<ConvolutionShape>()) return true;
                       return kernel(launch->kernel).library.is_attention &&
                              suits_cudnn(launch->shape.to<PackedHeadsShape>(), launch->dtype);
                     });
}

}  // namespace stepgate
