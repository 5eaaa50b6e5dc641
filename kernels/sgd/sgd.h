// SPDX-License-Identifier: MIT
// Stochastic gradient descent: w -= learning_rate * g.
//   shape     rows x columns parameters
//   operands  weights, gradients
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Sgd {
  static constexpr std::string_view name = "sgd";
  struct Attributes {
    double learning_rate = 0;
  };
};

}  // namespace kernels

std::vector<Kernel> sgd_kernels();

// Only in CUDA builds.
Launch prepare_sgd(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
