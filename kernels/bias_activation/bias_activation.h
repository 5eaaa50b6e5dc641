// SPDX-License-Identifier: MIT
// y[r][c] = activation(x[r][c] + bias[c]).
//   shape     rows, columns
//   operands  x, bias ([columns]), y; y may be x
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct BiasActivation {
  static constexpr std::string_view name = "bias_activation";
  struct Attributes {
    bool relu = false;  // otherwise no activation
  };
};

}  // namespace kernels

std::vector<Kernel> bias_activation_kernels();

// Only in CUDA builds.
Launch prepare_bias_activation(const KernelShape&, DType, const KernelAttributes&,
                               const LaunchContext&);

}  // namespace stepgate
