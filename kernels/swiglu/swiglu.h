// SPDX-License-Identifier: MIT
// The gated linear unit whose gate is a SiLU (Shazeer: GLU variants improve transformer, 2020,
// equation 6; biases are the GEMM's):
//   swiglu(gate, up) = silu(gate) up,  silu(z) = z s,  s = 1 / (1 + exp(-z))
//   swiglu    swiglu_gradient
//   shape     rows; columns = F, width of the result
//   operands  swiglu: x ([rows][2 F], of each row gate, then up), y [rows][F]
//             swiglu_gradient: x, d_y [rows][F], d_x ([rows][2 F], may be x)
//               d_gate = d_y up s (1 + gate (1 - s)),  d_up = d_y gate s
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Swiglu {
  static constexpr std::string_view name = "swiglu";
  using Attributes = NoAttributes;
};

struct SwigluGradient {
  static constexpr std::string_view name = "swiglu_gradient";
  using Attributes = NoAttributes;
};

}  // namespace kernels

std::vector<Kernel> swiglu_kernels();

// Only in CUDA builds.
Launch prepare_swiglu(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);
Launch prepare_swiglu_gradient(const KernelShape&, DType, const KernelAttributes&,
                               const LaunchContext&);

}  // namespace stepgate
