// SPDX-License-Identifier: MIT
// AdamW with decoupled weight decay (Loshchilov and Hutter, ICLR 2019, algorithm 2).
//   shape     rows x columns parameters
//   operands  weights, gradients, m (fp32), v (fp32), counter (uint64 [1])
// The counter is the number of this step, counted from 1.
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w -= learning_rate ((m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay w)
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Adamw {
  static constexpr std::string_view name = "adamw";
  struct Attributes {
    double learning_rate = 0;
    double beta1 = 0;
    double beta2 = 0;
    double epsilon = 0;
    double weight_decay = 0;
  };
};

}  // namespace kernels

Kernel adamw_kernel();

// Only in CUDA builds.
Launch prepare_adamw(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
