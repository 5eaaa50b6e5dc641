// SPDX-License-Identifier: MIT
// One parameter's step of AdamW in double, for the references of the kernels that make it. Formula
// and attributes: adamw.h. The CUDA side is adamw_update.cuh's.
#pragma once

#include <cmath>

#include "kernels/adamw/adamw.h"

namespace stepgate {

struct AdamwNumbers {
  double weight;
  double m;
  double v;
};

// `updates` counts this one, from 1.
inline AdamwNumbers adamw_step(const AdamwNumbers& before, double gradient, double updates,
                               const KernelAttributes& attributes) {
  const auto rule = attributes.as<kernels::Adamw>();
  const double beta1 = rule.beta1;
  const double beta2 = rule.beta2;
  const double m = beta1 * before.m + (1 - beta1) * gradient;
  const double v = beta2 * before.v + (1 - beta2) * gradient * gradient;
  const double m_hat = m / (1 - std::pow(beta1, updates));
  const double v_hat = v / (1 - std::pow(beta2, updates));
  const double direction = m_hat / (std::sqrt(v_hat) + rule.epsilon);
  const double change = direction + rule.weight_decay * before.weight;
  return {before.weight - rule.learning_rate * change, m, v};
}

}  // namespace stepgate
