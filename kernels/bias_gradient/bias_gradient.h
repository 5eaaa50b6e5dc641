// SPDX-License-Identifier: MIT
// db[c] = sum over rows of dy[r][c], or db[c] += that sum. The order of the sum depends on the
// shape alone.
//   shape     rows, columns
//   operands  dy, db ([columns]; read only when accumulating)
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct BiasGradient {
  static constexpr std::string_view name = "bias_gradient";
  struct Attributes {
    bool accumulate = false;
  };
};

}  // namespace kernels

std::vector<Kernel> bias_gradient_kernels();

// Only in CUDA builds.
Launch prepare_bias_gradient(const KernelShape&, DType, const KernelAttributes&,
                             const LaunchContext&);

}  // namespace stepgate
