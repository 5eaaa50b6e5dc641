// SPDX-License-Identifier: MIT
// Batch norm of the columns of a matrix while training, and its gradients. The rows are all pixels
// of all images (NHWC), and the columns are the channels. Launchers exist only in CUDA builds.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

// Whether the norm ends with a relu: y = max(norm, 0).
struct ReluAttributes {
  static constexpr std::string_view names = "relu";
  bool relu = false;
};

// The number of parts among which rows are divided; part p takes rows p, p + parts, ... Two blocks
// fit on each of the 132 multiprocessors of an H200. A part has at least 64 rows, so that its sums
// are few bytes compared with its rows.
constexpr std::int64_t batch_norm_parts(std::int64_t rows) {
  constexpr std::int64_t most = 2 * 132, least_rows = 64;
  const std::int64_t parts = rows / least_rows;
  return parts < 1 ? 1 : parts < most ? parts : most;
}

// Bytes of a row of a mask, with a bit for each column.
template <class Size>
constexpr Size mask_bytes_of_row(Size columns) {
  constexpr std::int64_t bits = 8;
  return (columns + (bits - 1)) / bits;
}

// Vectors of the statistics, each with a number for each column.
constexpr std::int64_t batch_statistics_vectors = 4;

namespace kernels {

// Sums for the mean and the variance of each column, by parts. The first row is subtracted from
// every row, so that a mean far from 0 costs the variance no bits.
//   shape     rows, columns, parts (batch_norm_parts(rows)); part p takes rows p, p + parts, ...
//   operands  x, partials (fp32 [parts][2 columns]: of x[r][c] - x[0][c], then of its squares)
struct BatchNormSums {
  static constexpr std::string_view name = "batch_norm_sums";
  using Shape = PartsShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The statistics of each column, from the sums of batch_norm_sums. y is normalised with the biased
// variance; the running variance takes in the unbiased one, rows / (rows - 1) of it, as PyTorch
// does. There must be at least 2 rows.
//   running = (1 - momentum) running + momentum new
//   shape     rows, columns, parts, as of batch_norm_sums
//   operands  first_row ([columns]: x[0]), partials (fp32 [parts][2 columns]), weight ([columns]),
//             bias ([columns]), running_mean (fp32 [columns]), running_variance (fp32 [columns]),
//             statistics (fp32 [4][columns]: the mean, 1 / sqrt(variance + epsilon), the scale
//             weight / sqrt(variance + epsilon), and the bias)
struct BatchNormFinish {
  static constexpr std::string_view name = "batch_norm_finish";
  using Shape = PartsShape;
  struct Attributes {
    static constexpr std::string_view names = "epsilon momentum";
    double epsilon = 0;
    double momentum = 0;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// norm(x) = (x - mean) / sqrt(variance + epsilon) * weight + bias, with mean and variance of each
// column (Ioffe and Szegedy: Batch Normalization, 2015). An addition and the relu are computed
// before the only rounding.
//   batch_norm_apply    batch_norm_add_apply    batch_norm_two_apply
//   shape     rows, columns
//   operands  batch_norm_apply: x, statistics (fp32 [4][columns], of batch_norm_finish), y;
//               y = norm(x), or relu(norm(x))
//             batch_norm_add_apply: x, statistics, residual, y, mask; y = relu(norm(x) + residual)
//             batch_norm_two_apply: x, statistics, shortcut, shortcut_statistics, y, mask;
//               y = relu(norm(x) + norm(shortcut))
//             mask (bytes [rows][columns / 8, rounded up]): bit c % 8 of byte c / 8 says whether y
//               was positive before it was rounded; bits beyond the columns are 0
struct BatchNormApply {
  static constexpr std::string_view name = "batch_norm_apply";
  using Shape = MatrixShape;
  using Attributes = ReluAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct BatchNormAddApply {
  static constexpr std::string_view name = "batch_norm_add_apply";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct BatchNormTwoApply {
  static constexpr std::string_view name = "batch_norm_two_apply";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Sums for the gradients of a norm, by parts. With n = (x - mean) / deviation, d is d_y where y was
// positive before it was rounded, and 0 elsewhere.
//   batch_norm_gradient_sums    batch_norm_add_gradient_sums
//   shape     rows, columns, parts (batch_norm_parts(rows)); part p takes rows p, p + parts, ...
//   operands  batch_norm_gradient_sums: d_y, x, statistics (fp32 [4][columns]), partials; with
//               relu, norm(x) is computed again to know d, and without it d = d_y
//             batch_norm_add_gradient_sums: d_y, x, statistics, mask (bytes [rows][columns / 8,
//               rounded up]), d_sum (may be d_y), partials; the mask says where d is d_y, and
//               d_sum = d is the gradient of both summands
//             partials (fp32 [parts][2 columns]): sums of d, then of d n
struct BatchNormGradientSums {
  static constexpr std::string_view name = "batch_norm_gradient_sums";
  using Shape = PartsShape;
  using Attributes = ReluAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct BatchNormAddGradientSums {
  static constexpr std::string_view name = "batch_norm_add_gradient_sums";
  using Shape = PartsShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The gradients of weight and bias, and the means that the gradient of x needs, from the sums of a
// gradient. With n = (x - mean) / deviation, the weight's gradient is the sum over rows of d n, and
// the bias's gradient that of d.
//   shape     rows, columns, parts, as of the sums
//   operands  partials (fp32 [parts][2 columns]), d_weight and d_bias ([columns]; read only when
//             accumulating), means (fp32 [2][columns]: over the rows, of d, then of d n)
struct BatchNormGradientFinish {
  static constexpr std::string_view name = "batch_norm_gradient_finish";
  using Shape = PartsShape;
  struct Attributes {
    static constexpr std::string_view names = "accumulate";
    bool accumulate = false;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// d_x = scale (d - mean of d - n mean of (d n)), with n = (x - mean) / deviation. With relu, d is
// d_y where norm(x) is positive and 0 elsewhere; without it d = d_y.
//   shape     rows, columns
//   operands  d_y, x, statistics (fp32 [4][columns]), means (fp32 [2][columns]), d_x (may be x)
struct BatchNormGradientApply {
  static constexpr std::string_view name = "batch_norm_gradient_apply";
  using Shape = MatrixShape;
  using Attributes = ReluAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

std::vector<Kernel> batch_norm_kernels();

}  // namespace stepgate
