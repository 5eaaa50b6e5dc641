// SPDX-License-Identifier: MIT
// y = x / sqrt(mean of x^2 + epsilon) * weight, the mean over each row (Zhang and Sennrich: Root
// Mean Square Layer Normalization, 2019).
//   rms_norm    residual_rms_norm    residual_bias_rms_norm
//   shape     rows, columns
//   operands  rms_norm: x, weight ([columns]), y, statistics (fp32 [rows]: 1 / sqrt(mean of x^2 +
//             epsilon))
//             residual_bias_rms_norm: x, branch, branch_bias ([columns]), weight, sum (may be x),
//             y, statistics; sum = x + (branch + branch_bias), and the norm is of sum as it is
//             stored; residual_rms_norm: the same without branch_bias
#pragma once

#include "kernels/norm.h"

namespace stepgate {

namespace kernels {

struct RmsNorm {
  static constexpr std::string_view name = "rms_norm";
  using Attributes = NormAttributes;
};

struct ResidualRmsNorm {
  static constexpr std::string_view name = "residual_rms_norm";
  using Attributes = NormAttributes;
};

struct ResidualBiasRmsNorm {
  static constexpr std::string_view name = "residual_bias_rms_norm";
  using Attributes = NormAttributes;
};

}  // namespace kernels

std::vector<Kernel> rms_norm_kernels();

// Only in CUDA builds.
Launch prepare_rms_norm(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);
Launch prepare_residual_rms_norm(const KernelShape&, DType, const KernelAttributes&,
                                 const LaunchContext&);
Launch prepare_residual_bias_rms_norm(const KernelShape&, DType, const KernelAttributes&,
                                      const LaunchContext&);

}  // namespace stepgate
