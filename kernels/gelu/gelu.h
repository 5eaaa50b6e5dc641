// SPDX-License-Identifier: MIT
// The Gaussian error linear unit in its tanh approximation (Hendrycks and Gimpel: Gaussian Error
// Linear Units, 2016, section 2):
//   gelu(x) = x / 2 (1 + tanh(u)),  u = sqrt(2 / pi) (x + 0.044715 x^3)
//   gelu    gelu_gradient    bias_gelu
//   shape     rows, columns
//   operands  gelu: x, y (may be x)
//             gelu_gradient: x, d_y, d_x (may be d_y); d_x = d_y gelu'(x)
//             bias_gelu: x, bias ([columns]), pre, y; pre = x + bias (may be x), y = gelu of pre as
//             it is stored, of which the gradient will be taken
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Gelu {
  static constexpr std::string_view name = "gelu";
  using Attributes = NoAttributes;
};

struct GeluGradient {
  static constexpr std::string_view name = "gelu_gradient";
  using Attributes = NoAttributes;
};

struct BiasGelu {
  static constexpr std::string_view name = "bias_gelu";
  using Attributes = NoAttributes;
};

}  // namespace kernels

constexpr double gelu_slope = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double gelu_cubic = 0.044715;

std::vector<Kernel> gelu_kernels();

// Only in CUDA builds.
Launch prepare_gelu(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);
Launch prepare_gelu_gradient(const KernelShape&, DType, const KernelAttributes&,
                             const LaunchContext&);
Launch prepare_bias_gelu(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
