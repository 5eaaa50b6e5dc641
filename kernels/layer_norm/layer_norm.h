// SPDX-License-Identifier: MIT
// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, mean and biased variance of each row
// (Ba, Kiros and Hinton: Layer Normalization, 2016).
//   layer_norm    residual_layer_norm    residual_bias_layer_norm
//   shape     rows, columns
//   operands  layer_norm: x, weight, bias ([columns]), y, statistics (fp32 [rows][2]: the mean,
//   then
//             1 / sqrt(variance + epsilon))
//             residual_bias_layer_norm: x, branch, branch_bias ([columns]), weight, bias, sum (may
//             be x), y, statistics; sum = x + (branch + branch_bias), and the norm is of sum as it
//             is stored; residual_layer_norm: the same without branch_bias
#pragma once

#include "kernels/norm.h"

namespace stepgate {

namespace kernels {

struct LayerNorm {
  static constexpr std::string_view name = "layer_norm";
  using Attributes = NormAttributes;
};

struct ResidualLayerNorm {
  static constexpr std::string_view name = "residual_layer_norm";
  using Attributes = NormAttributes;
};

struct ResidualBiasLayerNorm {
  static constexpr std::string_view name = "residual_bias_layer_norm";
  using Attributes = NormAttributes;
};

}  // namespace kernels

std::vector<Kernel> layer_norm_kernels();

// Only in CUDA builds.
Launch prepare_layer_norm(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);
Launch prepare_residual_layer_norm(const KernelShape&, DType, const KernelAttributes&,
                                   const LaunchContext&);
Launch prepare_residual_bias_layer_norm(const KernelShape&, DType, const KernelAttributes&,
                                        const LaunchContext&);

}  // namespace stepgate
