// SPDX-License-Identifier: MIT
// The host side of adamw: the rule in double. Meaning and shapes: adamw.h.
#include "kernels/adamw/adamw.h"

#include <cmath>

#include "kernels/update/update_kernels.h"

namespace stepgate {
namespace {

struct AdamwRule {
  using Named = kernels::Adamw;
  // m 3, v 4, corrections 2, root, sum, quotient, decay 2, step 2
  static constexpr std::int64_t flops = 16;

  static double step(const Named::Attributes& rates, double updates, double weight, double gradient,
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

std::vector<Kernel> adamw_kernels() {
  return update_kernels<AdamwRule>(in_cuda_builds<adamw_launchers>());
}

}  // namespace stepgate
