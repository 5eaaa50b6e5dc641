// SPDX-License-Identifier: MIT
// Lion (Chen et al.: Symbolic Discovery of Optimization Algorithms, NeurIPS 2023, algorithm 2),
// plain, clipped and with an fp32 master of the weights. Shape, operands and what a control does:
// update_kernels.h, with the one moment m; g is the gradient times the control's factor.
//   c = beta1 m + (1 - beta1) g;  w -= learning_rate (sign(c) + weight_decay w)
//   m = beta2 m + (1 - beta2) g
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Lion {
  static constexpr std::string_view name = "lion";
  static constexpr std::size_t moments = 1;
  static constexpr bool counts_updates = false;
  struct Attributes {
    double learning_rate = 0;
    double beta1 = 0;
    double beta2 = 0;
    double weight_decay = 0;
  };
};

struct LionClipped {
  static constexpr std::string_view name = "lion_clipped";
  using Attributes = Lion::Attributes;
};

struct LionMaster {
  static constexpr std::string_view name = "lion_master";
  using Attributes = Lion::Attributes;
};

}  // namespace kernels

Kernel lion_kernel();
Kernel lion_clipped_kernel();
Kernel lion_master_kernel();

// Only in CUDA builds.
Launch prepare_lion(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);
Launch prepare_lion_clipped(const KernelShape&, DType, const KernelAttributes&,
                            const LaunchContext&);
Launch prepare_lion_master(const KernelShape&, DType, const KernelAttributes&,
                           const LaunchContext&);

}  // namespace stepgate
