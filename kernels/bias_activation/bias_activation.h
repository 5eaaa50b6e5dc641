// SPDX-License-Identifier: MIT
// y[r][c] = activation(x[r][c] + bias[c]).
//   shape     rows, columns
//   operands  x, bias ([columns]), y; y may be x
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace bias_activation_scalar {
constexpr std::size_t activation = 0;  // 0: none, 1: relu
}

Kernel bias_activation_kernel();

// Only in CUDA builds.
Launch prepare_bias_activation(const KernelShape&, DType, const KernelScalars&,
                               const LaunchContext&);

}  // namespace stepgate
