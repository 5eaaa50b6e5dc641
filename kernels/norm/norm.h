// SPDX-License-Identifier: MIT
// Layer norm and RMS norm of rows, and their gradients. Launchers exist only in CUDA builds.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

// layer: y = (x - mean) / deviation * weight + bias; rms: y = x / root mean square * weight.
enum class NormKind { layer, rms };

// Number of statistics of a row. layer: the mean and the reciprocal of the deviation; rms: the
// reciprocal of the root mean square.
constexpr std::int64_t statistics_of(NormKind kind) {
  return kind == NormKind::layer ? 2 : 1;
}

// Number of parameter vectors. layer: weight and bias; rms: weight.
constexpr std::int64_t parameters_of(NormKind kind) {
  return kind == NormKind::layer ? 2 : 1;
}

struct NormAttributes {
  static constexpr std::string_view names = "epsilon";
  double epsilon = 0;
};

struct NormGradientAttributes {
  static constexpr std::string_view names = "accumulate sums_d_x";
  bool accumulate = false;  // d_x is added to
  bool sums_d_x = false;    // partials end with the sums of d_x
};

// The number of parts among which the rows of a gradient are divided; part p takes rows p, p +
// parts, ... One block processes a part. Two blocks fit on each of the 132 multiprocessors of an
// H200, so that all parts run at once and end at once. A part has at least eight rows, which keeps
// the partial sums small compared with the rows.
constexpr std::int64_t norm_parts(std::int64_t rows) {
  constexpr std::int64_t most = 2 * 132, least_rows = 8;
  const std::int64_t parts = rows / least_rows;
  return parts < 1 ? 1 : parts < most ? parts : most;
}

// Number of elements of a gradient's partials: [parts][parameters], then, if sums_d_x is set,
// [parts][columns] with the sums of d_x before rounding.
constexpr CheckedSize norm_partial_elements(NormKind kind, const PartsSizes<CheckedSize>& shape,
                                            const NormGradientAttributes& attributes) {
  return shape.parts * (parameters_of(kind) + (attributes.sums_d_x ? 1 : 0)) * shape.columns;
}

namespace kernels {

// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, with mean and biased variance of each
// row (Ba, Kiros and Hinton: Layer Normalization, 2016).
//   layer_norm    residual_layer_norm    residual_bias_layer_norm
//   shape     rows, columns
//   operands  layer_norm: x, weight, bias ([columns]), y, statistics (fp32 [rows][2]: the mean,
//             then 1 / sqrt(variance + epsilon))
//             residual_bias_layer_norm: x, branch, branch_bias ([columns]), weight, bias, sum (may
//               be x), y, statistics; sum = x + (branch + branch_bias), and y is the norm of the
//               stored sum
//             residual_layer_norm: the operands of residual_bias_layer_norm without branch_bias
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

// The gradients of layer_norm: that of x, and those of the parameters by parts, which sum_parts
// adds up.
//   shape     rows, columns, parts (layer_norm_parts(rows)); part p takes rows p, p + parts, ...
//   operands  d_y, x, weight ([columns]), statistics (fp32 [rows][2], of layer_norm), d_x (read
//             only when accumulating), partials (fp32 [parts][2 columns]: of the weight, then of
//             the bias; with sums_d_x followed by [parts][columns] sums of d_x before rounding,
//             which are the gradient of a bias that was added to x)
// With n = (x - mean) / deviation and g = d_y weight: d_x = (g - mean(g) - n mean(g n)) /
// deviation. The weight's gradient is the sum over rows of d_y n, the bias's gradient that of d_y.
struct LayerNormGradient {
  static constexpr std::string_view name = "layer_norm_gradient";
  using Shape = PartsShape;
  using Attributes = NormGradientAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// The number of parts for that many rows; at most that many.
constexpr std::int64_t layer_norm_parts(std::int64_t rows) {
  return norm_parts(rows);
}

namespace kernels {

// y = x / sqrt(mean of x^2 + epsilon) * weight, with the mean over each row (Zhang and Sennrich:
// Root Mean Square Layer Normalization, 2019).
//   rms_norm    residual_rms_norm    residual_bias_rms_norm
//   shape     rows, columns
//   operands  rms_norm: x, weight ([columns]), y, statistics (fp32 [rows]: 1 / sqrt(mean of x^2 +
//             epsilon))
//             residual_bias_rms_norm: x, branch, branch_bias ([columns]), weight, sum (may be x),
//               y, statistics; sum = x + (branch + branch_bias), and y is the norm of the stored
//               sum
//             residual_rms_norm: the operands of residual_bias_rms_norm without branch_bias
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

// The gradients of rms_norm: that of x, and that of the weight by parts, which sum_parts adds up.
//   shape     rows, columns, parts (rms_norm_parts(rows)); part p takes rows p, p + parts, ...
//   operands  d_y, x, weight ([columns]), statistics (fp32 [rows], of rms_norm), d_x (read only
//             when accumulating), partials (fp32 [parts][columns]; with sums_d_x followed by
//             [parts][columns] sums of d_x before rounding, which are the gradient of a bias that
//             was added to x)
// With n = x / root mean square and g = d_y weight: d_x = (g - n mean(g n)) / root mean square. The
// weight's gradient is the sum over rows of d_y n.
struct RmsNormGradient {
  static constexpr std::string_view name = "rms_norm_gradient";
  using Shape = PartsShape;
  using Attributes = NormGradientAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// The number of parts for that many rows; at most that many.
constexpr std::int64_t rms_norm_parts(std::int64_t rows) {
  return norm_parts(rows);
}

std::vector<Kernel> norm_kernels();

}  // namespace stepgate
