// SPDX-License-Identifier: MIT
// db[c] = sum over rows of dy[r][c], or db[c] += that sum. The order of the sum depends on the
// shape alone.
//   shape     rows, columns
//   operands  dy, db ([columns]; read only when accumulating)
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace bias_gradient_scalar {
constexpr std::size_t accumulate = 0;
}

Kernel bias_gradient_kernel();

// Only in CUDA builds.
Launch prepare_bias_gradient(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
