// SPDX-License-Identifier: MIT
// Stochastic gradient descent: w -= learning_rate * g.
//   shape     rows x columns parameters
//   operands  weights, gradients
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace sgd_scalar {
constexpr std::size_t learning_rate = 0;
}

Kernel sgd_kernel();

// Only in CUDA builds.
Launch prepare_sgd(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
