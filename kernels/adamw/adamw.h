// SPDX-License-Identifier: MIT
// AdamW with decoupled weight decay (Loshchilov and Hutter, ICLR 2019, algorithm 2).
//   shape     rows x columns parameters
//   operands  weights, gradients, m (fp32), v (fp32), counter (uint64 [1])
// The counter is the number of this step, counted from 1.
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w -= learning_rate ((m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay w)
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace adamw_scalar {
constexpr std::size_t learning_rate = 0;
constexpr std::size_t beta1 = 1;
constexpr std::size_t beta2 = 2;
constexpr std::size_t epsilon = 3;
constexpr std::size_t weight_decay = 4;
}  // namespace adamw_scalar

Kernel adamw_kernel();

// Only in CUDA builds.
Launch prepare_adamw(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
