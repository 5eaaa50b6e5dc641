// SPDX-License-Identifier: MIT
// AdamW with decoupled weight decay (Loshchilov and Hutter, ICLR 2019, algorithm 2), plain, clipped
// and with an fp32 master of the weights. Shape, operands and what a control does:
// update_rule.h, with the moments m and v; g is the gradient times the control's factor, t the
// number of updates, this one included.
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w -= learning_rate ((m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay w)
#pragma once

#include "kernels/update/update_rule.h"

namespace stepgate {

namespace kernels {

struct Adamw {
  static constexpr std::string_view names[] = {"adamw", "adamw_clipped", "adamw_master"};
  static constexpr std::string_view name = names[0];
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

}  // namespace kernels

std::vector<Kernel> adamw_kernels();

// Only in CUDA builds.
UpdateLaunchers adamw_launchers();

}  // namespace stepgate
