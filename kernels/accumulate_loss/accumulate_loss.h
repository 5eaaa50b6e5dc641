// SPDX-License-Identifier: MIT
// sum += loss, so that the host need not read the loss of every step.
//   shape     unused
//   operands  loss (fp32 [1]), sum (fp32 [1])
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct AccumulateLoss {
  static constexpr std::string_view name = "accumulate_loss";
  using Attributes = NoAttributes;
};

}  // namespace kernels

std::vector<Kernel> accumulate_loss_kernels();

// Only in CUDA builds.
Launch prepare_accumulate_loss(const KernelShape&, DType, const KernelAttributes&,
                               const LaunchContext&);

}  // namespace stepgate
