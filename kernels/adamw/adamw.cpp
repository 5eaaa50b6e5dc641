// SPDX-License-Identifier: MIT
// The host side of adamw: the rule in double. Meaning and shapes: adamw.h.
#include "kernels/adamw/adamw.h"

#include <cmath>

#include "kernels/cuda_build.h"
#include "kernels/update/update_kernels.h"

namespace stepgate {
namespace {

struct AdamwRule {
  using Attributes = kernels::Adamw::Attributes;
  using Named = kernels::Adamw;
  // m 3, v 4, corrections 2, root, sum, quotient, decay 2, step 2
  static constexpr std::int64_t flops = 16;

  static double step(const Attributes& rates, double updates, double weight, double gradient,
                     double* moments) {
    double& m = moments[0];
    double& v = moments[1];
    m = rates.beta1 * m + (1 - rates.beta1) * gradient;
    v = rates.beta2 * v + (1 - rates.beta2) * gradient * gradient;
    const double m_hat = m / (1 - std::pow(rates.beta1, updates));
    const double v_hat = v / (1 - std::pow(rates.beta2, updates));
    const double direction = m_hat / (std::sqrt(v_hat) + rates.epsilon);
    return weight - rates.learning_rate * (direction + rates.weight_decay * weight);
  }
};

}  // namespace

Kernel adamw_kernel() {
  return update_kernel<kernels::Adamw, AdamwRule, UpdateKind::plain>(
      in_cuda_builds<prepare_adamw>());
}

Kernel adamw_clipped_kernel() {
  return update_kernel<kernels::AdamwClipped, AdamwRule, UpdateKind::clipped>(
      in_cuda_builds<prepare_adamw_clipped>());
}

Kernel adamw_master_kernel() {
  return update_kernel<kernels::AdamwMaster, AdamwRule, UpdateKind::master>(
      in_cuda_builds<prepare_adamw_master>());
}

}  // namespace stepgate
