// SPDX-License-Identifier: MIT
// mean = sum / count; sum = 0.
//   shape     unused
//   operands  sum (fp32 [1]), mean (fp32 [1])
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct MeanLoss {
  static constexpr std::string_view name = "mean_loss";
  struct Attributes {
    std::int64_t count = 1;  // of the losses in the sum
  };
};

}  // namespace kernels

std::vector<Kernel> mean_loss_kernels();

// Only in CUDA builds.
Launch prepare_mean_loss(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
