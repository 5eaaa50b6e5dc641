// SPDX-License-Identifier: MIT
// dx = dy where the activation y was positive, else 0.
//   shape     rows x columns elements
//   operands  y, dy, dx; dx may be dy
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct ReluGradient {
  static constexpr std::string_view name = "relu_gradient";
  using Attributes = NoAttributes;
};

}  // namespace kernels

std::vector<Kernel> relu_gradient_kernels();

// Only in CUDA builds.
Launch prepare_relu_gradient(const KernelShape&, DType, const KernelAttributes&,
                             const LaunchContext&);

}  // namespace stepgate
