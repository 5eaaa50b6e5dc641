// SPDX-License-Identifier: MIT
// Layer norm and RMS norm of rows, and their gradients. Launchers are in CUDA builds alone.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

// layer: y = (x - mean) / deviation * weight + bias; rms: y = x / root mean square * weight.
enum class NormKind { layer, rms };

// layer: the mean and the reciprocal of the deviation; rms: the reciprocal of the root mean square.
constexpr std::int64_t statistics_of(NormKind kind) {
  return kind == NormKind::layer ? 2 : 1;
}

// layer: weight and bias; rms: weight.
constexpr std::int64_t parameters_of(NormKind kind) {
  return kind == NormKind::layer ? 2 : 1;
}

struct NormAttributes {
  double epsilon = 0;
};

struct NormGradientAttributes {
  bool accumulate = false;  // d_x is added to
  bool sums_d_x = false;    // partials end with those of d_x
};

// How many parts the rows of a gradient are divided among; part p takes rows p, p + parts, ... A
// block takes a part, and two fit each of the 132 multiprocessors of an H200, so that all run at
// once and end at once. Eight rows a part at least keep the partial sums small
// beside the rows.
constexpr std::int64_t norm_parts(std::int64_t rows) {
  constexpr std::int64_t most = 2 * 132, least_rows = 8;
  const std::int64_t parts = rows / least_rows;
  return parts < 1 ? 1 : parts < most ? parts : most;
}

// Numbers of a gradient's partials: [parts][parameters], then, where asked for, [parts][columns] of
// the sums of d_x before it is rounded.
constexpr CheckedSize norm_partial_elements(NormKind kind, const PartsSizes<CheckedSize>& shape,
                                            const NormGradientAttributes& attributes) {
  return shape.parts * (parameters_of(kind) + (attributes.sums_d_x ? 1 : 0)) * shape.columns;
}

namespace kernels {

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
struct LayerNorm {
  static constexpr std::string_view name = "layer_norm";
  using Shape = MatrixShape;
  using Attributes = NormAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct ResidualLayerNorm {
  static constexpr std::string_view name = "residual_layer_norm";
  using Shape = MatrixShape;
  using Attributes = NormAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct ResidualBiasLayerNorm {
  static constexpr std::string_view name = "residual_bias_layer_norm";
  using Shape = MatrixShape;
  using Attributes = NormAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The gradients of layer_norm: that of x, and the parameters' by parts, which sum_parts adds up.
//   shape     rows, columns, parts (layer_norm_parts(rows)); part p takes rows p, p + parts,
//             ...
//   operands  d_y, x, weight ([columns]), statistics (fp32 [rows][2], of layer_norm), d_x (read
//             only when added to), partials (fp32 [parts][2 columns]: of the weight, then of the
//             bias; where d_x is summed, [parts][columns] of it, before it is rounded, follow: the
//             gradient of a bias that was added to x)
// With n = (x - mean) / deviation and g = d_y weight: d_x = (g - mean(g) - n mean(g n)) /
// deviation, the weight's gradient is the sum over rows of d_y n, the bias's that of d_y.
struct LayerNormGradient {
  static constexpr std::string_view name = "layer_norm_gradient";
  using Shape = PartsShape;
  using Attributes = NormGradientAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// The parts of that many rows; at most so many.
constexpr std::int64_t layer_norm_parts(std::int64_t rows) {
  return norm_parts(rows);
}

namespace kernels {

// y = x / sqrt(mean of x^2 + epsilon) * weight, the mean over each row (Zhang and Sennrich: Root
// Mean Square Layer Normalization, 2019).
//   rms_norm    residual_rms_norm    residual_bias_rms_norm
//   shape     rows, columns
//   operands  rms_norm: x, weight ([columns]), y, statistics (fp32 [rows]: 1 / sqrt(mean of x^2 +
//             epsilon))
//             residual_bias_rms_norm: x, branch, branch_bias ([columns]), weight, sum (may be x),
//             y, statistics; sum = x + (branch + branch_bias), and the norm is of sum as it is
//             stored; residual_rms_norm: the same without branch_bias
struct RmsNorm {
  static constexpr std::string_view name = "rms_norm";
  using Shape = MatrixShape;
  using Attributes = NormAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct ResidualRmsNorm {
  static constexpr std::string_view name = "residual_rms_norm";
  using Shape = MatrixShape;
  using Attributes = NormAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct ResidualBiasRmsNorm {
  static constexpr std::string_view name = "residual_bias_rms_norm";
  using Shape = MatrixShape;
  using Attributes = NormAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The gradients of rms_norm: that of x, and the weight's by parts, which sum_parts adds up.
//   shape     rows, columns, parts (rms_norm_parts(rows)); part p takes rows p, p + parts, ...
//   operands  d_y, x, weight ([columns]), statistics (fp32 [rows], of rms_norm), d_x (read only
//             when added to), partials (fp32 [parts][columns]; where d_x is summed, as much of it,
//             before it is rounded, follows: the gradient of a bias that was added to x)
// With n = x / root mean square and g = d_y weight: d_x = (g - n mean(g n)) / root mean square, the
// weight's gradient is the sum over rows of d_y n.
struct RmsNormGradient {
  static constexpr std::string_view name = "rms_norm_gradient";
  using Shape = PartsShape;
  using Attributes = NormGradientAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// The parts of that many rows; at most so many.
constexpr std::int64_t rms_norm_parts(std::int64_t rows) {
  return norm_parts(rows);
}

std::vector<Kernel> norm_kernels();

}  // namespace stepgate
