// SPDX-License-Identifier: MIT
// The CUDA side of lion. Meaning and shapes: optimizer.h.
#include "kernels/optimizer/optimizer.h"
#include "kernels/optimizer/update_kernels.cuh"

namespace stepgate {
namespace {

struct LionOnDevice {
  struct Rates {
    float learning_rate, beta1, one_minus_beta1, beta2, one_minus_beta2;
    float decay;  // learning_rate * weight_decay
  };
  struct Corrections {};
  using Named = kernels::Lion;

  static Rates rates(const Named::Attributes& rule) {
    return {.learning_rate = static_cast<float>(rule.learning_rate),
            .beta1 = static_cast<float>(rule.beta1),
            .one_minus_beta1 = static_cast<float>(1 - rule.beta1),
            .beta2 = static_cast<float>(rule.beta2),
            .one_minus_beta2 = static_cast<float>(1 - rule.beta2),
            .decay = static_cast<float>(rule.learning_rate * rule.weight_decay)};
  }
  static __device__ __forceinline__ Corrections corrections(const Rates&, float) { return {}; }
  static __device__ __forceinline__ float step(const Rates& rates, Corrections, float gradient,
                                               float weight, float* moments) {
    const float c = fmaf(rates.one_minus_beta1, gradient, rates.beta1 * moments[0]);
    moments[0] = fmaf(rates.one_minus_beta2, gradient, rates.beta2 * moments[0]);
    const float sign = c > 0.0f ? 1.0f : c < 0.0f ? -1.0f : c;
    return fmaf(-rates.learning_rate, sign, fmaf(-rates.decay, weight, weight));
  }
};

}  // namespace

UpdateLaunchers lion_launchers() {
  return launchers_of<LionOnDevice>();
}

}  // namespace stepgate
