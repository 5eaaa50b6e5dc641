// SPDX-License-Identifier: MIT
// AdamW on the weights themselves, clipped and unscaled by clip's factor. Formula and scalars:
// adamw.h, with g = factor * gradient and t = updates. Where the factor is 0 nothing changes.
//   shape     rows x columns parameters
//   operands  weights, gradients, m (fp32), v (fp32), control (fp32 [8], see update_control.h)
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

Kernel adamw_clipped_kernel();

// Only in CUDA builds.
Launch prepare_adamw_clipped(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
