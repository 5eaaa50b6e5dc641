// SPDX-License-Identifier: MIT
// mean = sum / count; sum = 0.
//   shape     unused
//   operands  sum (fp32 [1]), mean (fp32 [1])
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace mean_loss_scalar {
constexpr std::size_t count = 0;
}

Kernel mean_loss_kernel();

// Only in CUDA builds.
Launch prepare_mean_loss(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
