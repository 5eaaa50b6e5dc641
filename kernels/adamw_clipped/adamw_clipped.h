// SPDX-License-Identifier: MIT
// AdamW on the weights themselves, clipped and unscaled by clip's factor. Formula and attributes:
// adamw.h, with g = factor * gradient and t = updates. Where the factor is 0 nothing changes.
//   shape     rows x columns parameters
//   operands  weights, gradients, m (fp32), v (fp32), control (fp32 [8], see update_control.h)
#pragma once

#include "kernels/adamw/adamw.h"
#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct AdamwClipped {
  static constexpr std::string_view name = "adamw_clipped";
  using Attributes = Adamw::Attributes;
};

}  // namespace kernels

Kernel adamw_clipped_kernel();

// Only in CUDA builds.
Launch prepare_adamw_clipped(const KernelShape&, DType, const KernelAttributes&,
                             const LaunchContext&);

}  // namespace stepgate
