// SPDX-License-Identifier: MIT
// One parameter's step of AdamW in fp32, for every kernel that makes it. What is the same for all
// parameters is worked out before: AdamwRates on the host, AdamwCorrections by each thread, since
// the number of the update is known on the device only. Formula and attributes: optimizer.h.
#pragma once

#include <cmath>

#include "kernels/launch.cuh"
#include "kernels/optimizer/optimizer.h"

namespace stepgate {

struct AdamwRates {
  float learning_rate;
  float one_minus_beta1;
  float beta1;
  float one_minus_beta2;
  float beta2;
  float log_beta1;
  float log_beta2;
  float epsilon;
  float decay;  // learning_rate * weight_decay
};

inline AdamwRates adamw_rates(const kernels::Adamw::Attributes& rule) {
  const double beta1 = rule.beta1;
  const double beta2 = rule.beta2;
  const double learning_rate = rule.learning_rate;
  return {.learning_rate = static_cast<float>(learning_rate),
          .one_minus_beta1 = static_cast<float>(1 - beta1),
          .beta1 = static_cast<float>(beta1),
          .one_minus_beta2 = static_cast<float>(1 - beta2),
          .beta2 = static_cast<float>(beta2),
          .log_beta1 = static_cast<float>(std::log(beta1)),
          .log_beta2 = static_cast<float>(std::log(beta2)),
          .epsilon = static_cast<float>(rule.epsilon),
          .decay = static_cast<float>(learning_rate * rule.weight_decay)};
}

struct AdamwCorrections {
  float step_size;    // learning_rate / (1 - beta1^t)
  float root_factor;  // 1 / sqrt(1 - beta2^t)
};

// 1 - beta^t without the cancellation that beta near 1 and small t would bring.
__device__ __forceinline__ float bias_correction(float log_beta, float updates) {
  return -expm1f(updates * log_beta);
}

__device__ __forceinline__ AdamwCorrections adamw_corrections(const AdamwRates& rates,
                                                              float updates) {
  return {rates.learning_rate / bias_correction(rates.log_beta1, updates),
          1.0f / sqrtf(bias_correction(rates.log_beta2, updates))};
}

// Moves m and v on and returns the new weight.
__device__ __forceinline__ float adamw_step(const AdamwRates& rates,
                                            const AdamwCorrections& corrections, float gradient,
                                            float weight, float& m, float& v) {
  m = fmaf(rates.one_minus_beta1, gradient, rates.beta1 * m);
  v = fmaf(rates.one_minus_beta2 * gradient, gradient, rates.beta2 * v);
  const float denominator = fmaf(sqrtf(v), corrections.root_factor, rates.epsilon);
  const float decayed = fmaf(-rates.decay, weight, weight);
  return fmaf(-corrections.step_size, m / denominator, decayed);
}

}  // namespace stepgate
