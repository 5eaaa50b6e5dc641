// SPDX-License-Identifier: MIT
// AdamW with decoupled weight decay (Loshchilov and Hutter, ICLR 2019, algorithm 2), plain, clipped
// and with an fp32 master of the weights. Shape, operands and what a control does:
// update_kernels.h, with the moments m and v; g is the gradient times the control's factor, t the
// number of updates, this one included.
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w -= learning_rate ((m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay w)
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Adamw {
  static constexpr std::string_view name = "adamw";
  static constexpr std::size_t moments = 2;
  static constexpr bool counts_updates = true;
  struct Attributes {
    double learning_rate = 0;
    double beta1 = 0;
    double beta2 = 0;
    double epsilon = 0;
    double weight_decay = 0;
  };
};

struct AdamwClipped {
  static constexpr std::string_view name = "adamw_clipped";
  using Attributes = Adamw::Attributes;
};

struct AdamwMaster {
  static constexpr std::string_view name = "adamw_master";
  using Attributes = Adamw::Attributes;
};

}  // namespace kernels

Kernel adamw_kernel();
Kernel adamw_clipped_kernel();
Kernel adamw_master_kernel();

// Only in CUDA builds.
Launch prepare_adamw(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);
Launch prepare_adamw_clipped(const KernelShape&, DType, const KernelAttributes&,
                             const LaunchContext&);
Launch prepare_adamw_master(const KernelShape&, DType, const KernelAttributes&,
                            const LaunchContext&);

}  // namespace stepgate
