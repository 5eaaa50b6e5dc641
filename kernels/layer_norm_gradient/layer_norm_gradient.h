// SPDX-License-Identifier: MIT
// The gradients of layer_norm: that of x, and the parameters' by parts, which sum_parts adds up.
//   shape     rows, columns; depth = parts (layer_norm_parts(rows)); part p takes rows p, p +
//             parts, ...
//   operands  d_y, x, weight ([columns]), statistics (fp32 [rows][2], of layer_norm), d_x (read
//             only when added to), partials (fp32 [parts][2 columns]: of the weight, then of the
//             bias; where d_x is summed, [parts][columns] of it, before it is rounded, follow: the
//             gradient of a bias that was added to x)
// With n = (x - mean) / deviation and g = d_y weight: d_x = (g - mean(g) - n mean(g n)) /
// deviation, the weight's gradient is the sum over rows of d_y n, the bias's that of d_y.
#pragma once

#include "kernels/norm.h"

namespace stepgate {

namespace kernels {

struct LayerNormGradient {
  static constexpr std::string_view name = "layer_norm_gradient";
  using Attributes = NormGradientAttributes;
};

}  // namespace kernels

// The parts of that many rows; at most so many.
constexpr std::int64_t layer_norm_parts(std::int64_t rows) {
  return norm_parts(rows);
}

std::vector<Kernel> layer_norm_gradient_kernels();

// Only in CUDA builds.
Launch prepare_layer_norm_gradient(const KernelShape&, DType, const KernelAttributes&,
                                   const LaunchContext&);

}  // namespace stepgate
