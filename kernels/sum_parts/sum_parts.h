// SPDX-License-Identifier: MIT
// sums[c] = sum over parts of partials[p][c], or sums[c] += that: the second half of a sum over
// rows whose first half was taken by parts. The order of the sum depends on the shape alone.
//   shape     depth = parts; columns
//   operands  partials (fp32 [parts][columns]), sums ([columns]; read only when accumulating)
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace sum_parts_scalar {
constexpr std::size_t accumulate = 0;
}

Kernel sum_parts_kernel();

// Only in CUDA builds.
Launch prepare_sum_parts(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
