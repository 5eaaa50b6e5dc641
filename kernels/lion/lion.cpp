// SPDX-License-Identifier: MIT
// The host side of lion: the rule in double. Meaning and shapes: lion.h.
#include "kernels/lion/lion.h"

#include "kernels/update/update_kernels.h"

namespace stepgate {
namespace {

struct LionRule {
  using Named = kernels::Lion;
  static constexpr std::int64_t flops = 11;  // c 3, its sign, decay 2, step 2, m 3

  static double step(const Named::Attributes& rates, double, double weight, double gradient,
                     double* moments) {
    double& m = moments[0];
    const double c = rates.beta1 * m + (1 - rates.beta1) * gradient;
    m = rates.beta2 * m + (1 - rates.beta2) * gradient;
    const double sign = c > 0 ? 1 : c < 0 ? -1 : c;  // of 0, and of what is no number, itself
    return weight - rates.learning_rate * (sign + rates.weight_decay * weight);
  }
};

}  // namespace

std::vector<Kernel> lion_kernels() {
  return update_kernels<LionRule>(in_cuda_builds<lion_launchers>());
}

}  // namespace stepgate
