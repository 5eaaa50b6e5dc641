// SPDX-License-Identifier: MIT
// AdamW on an fp32 master of the weights, clipped and unscaled by clip's factor; the weights become
// the rounded master. Formula and attributes: adamw.h, with g = factor * gradient and t = updates.
// Where the factor is 0 nothing changes.
//   shape     rows x columns parameters
//   operands  weights, gradients, master (fp32), m (fp32), v (fp32), control (fp32 [8], see
//             update_control.h)
// The weights are never read: they are read_write since a skipped launch leaves them as they were.
#pragma once

#include "kernels/adamw/adamw.h"
#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct AdamwMaster {
  static constexpr std::string_view name = "adamw_master";
  using Attributes = Adamw::Attributes;
};

}  // namespace kernels

Kernel adamw_master_kernel();

// Only in CUDA builds.
Launch prepare_adamw_master(const KernelShape&, DType, const KernelAttributes&,
                            const LaunchContext&);

}  // namespace stepgate
