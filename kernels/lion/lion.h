// SPDX-License-Identifier: MIT
// Lion (Chen et al.: Symbolic Discovery of Optimization Algorithms, NeurIPS 2023, algorithm 2),
// plain, clipped and with an fp32 master of the weights. Shape, operands and what a control does:
// update_rule.h, with the one moment m; g is the gradient times the control's factor.
//   c = beta1 m + (1 - beta1) g;  w -= learning_rate (sign(c) + weight_decay w)
//   m = beta2 m + (1 - beta2) g
#pragma once

#include "kernels/update/update_rule.h"

namespace stepgate {

namespace kernels {

struct Lion {
  static constexpr std::string_view names[] = {"lion", "lion_clipped", "lion_master"};
  static constexpr std::string_view name = names[0];
  static constexpr std::size_t moments = 1;
  static constexpr bool counts_updates = false;
  struct Attributes {
    double learning_rate = 0;
    double beta1 = 0;
    double beta2 = 0;
    double weight_decay = 0;
  };
};

}  // namespace kernels

std::vector<Kernel> lion_kernels();

// Only in CUDA builds.
UpdateLaunchers lion_launchers();

}  // namespace stepgate
