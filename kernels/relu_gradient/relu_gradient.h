// SPDX-License-Identifier: MIT
// dx = dy where the activation y was positive, else 0.
//   shape     rows x columns elements
//   operands  y, dy, dx; dx may be dy
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

Kernel relu_gradient_kernel();

// Only in CUDA builds.
Launch prepare_relu_gradient(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
