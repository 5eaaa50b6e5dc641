// SPDX-License-Identifier: MIT
// The gradients of rms_norm: that of x, and the weight's by parts, which sum_parts adds up.
//   shape     rows, columns; depth = parts (rms_norm_parts(rows)); part p takes rows p, p + parts,
//             ...
//   operands  d_y, x, weight ([columns]), statistics (fp32 [rows], of rms_norm), d_x (read only
//             when added to), partials (fp32 [parts][columns]; where d_x is summed, as much of it,
//             before it is rounded, follows: the gradient of a bias that was added to x)
// With n = x / root mean square and g = d_y weight: d_x = (g - n mean(g n)) / root mean square, the
// weight's gradient is the sum over rows of d_y n.
#pragma once

#include "kernels/norm.h"

namespace stepgate {

namespace kernels {

struct RmsNormGradient {
  static constexpr std::string_view name = "rms_norm_gradient";
  using Attributes = NormGradientAttributes;
};

}  // namespace kernels

// The parts of that many rows; at most so many.
constexpr std::int64_t rms_norm_parts(std::int64_t rows) {
  return norm_parts(rows);
}

std::vector<Kernel> rms_norm_gradient_kernels();

// Only in CUDA builds.
Launch prepare_rms_norm_gradient(const KernelShape&, DType, const KernelAttributes&,
                                 const LaunchContext&);

}  // namespace stepgate
