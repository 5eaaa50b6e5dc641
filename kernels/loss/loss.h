// SPDX-License-Identifier: MIT
// The loss of a step, its gradient, and kernels that accumulate and report the loss on the device.
// Launchers exist only in CUDA builds.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// Softmax cross-entropy of each row with its label, and the gradient of the mean over rows.
//   cross_entropy    scaled_cross_entropy
//   shape     rows; columns = classes, or more columns than the attribute `classes`
//   operands  cross_entropy: logits, labels (int32 [rows], each in [0, classes), or negative where
//             the row is padding), gradient, row_losses (fp32 [rows])
//             scaled_cross_entropy: logits, labels, scale (fp32 [1]), gradient, row_losses
// gradient[r][c] = scale (softmax(logits[r])[c] - (c == labels[r])) / rows. The scale is 1 in
// cross_entropy. The attribute rows_of_mean replaces the divisor, for a batch that is
// differentiated in parts. gradient may be logits. The losses are not scaled: the scale keeps
// gradients in fp16 above its smallest numbers. Columns beyond the classes have no part in the
// softmax, and their gradient is 0. A row of padding has loss 0 and gradient 0 (PyTorch's
// ignore_index), and does not change the divisor.
struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  using Shape = MatrixShape;
  struct Attributes {
    static constexpr std::string_view names = "rows_of_mean classes";
    std::int64_t rows_of_mean = 0;  // 0: the rows of the launch
    std::int64_t classes = 0;       // 0: all columns
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct ScaledCrossEntropy {
  static constexpr std::string_view name = "scaled_cross_entropy";
  using Shape = MatrixShape;
  using Attributes = CrossEntropy::Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

constexpr double rows_of_mean(const MatrixShape& shape,
                              const kernels::CrossEntropy::Attributes& attributes) {
  const std::int64_t rows = attributes.rows_of_mean;
  return static_cast<double>(rows > 0 ? rows : shape.rows);
}

constexpr std::int64_t classes_of(const MatrixShape& shape,
                                  const kernels::CrossEntropy::Attributes& attributes) {
  const std::int64_t classes = attributes.classes;
  return classes > 0 ? classes : shape.columns;
}

namespace kernels {

// The mean squared error (torch.nn.functional.mse_loss), and its gradient.
//   shape     rows, columns
//   operands  prediction, target, gradient (may be prediction), row_losses (fp32 [rows])
// row_losses[r] = mean over c of (prediction[r][c] - target[r][c])^2, and gradient[r][c] = 2
// (prediction[r][c] - target[r][c]) / (rows columns), the slope of the mean of the row losses.
struct SquaredError {
  static constexpr std::string_view name = "squared_error";
  using Shape = MatrixShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Computes mean = sum / count; sum = 0.
//   shape     unused
//   operands  sum (fp32 [1]), mean (fp32 [1])
struct MeanLoss {
  static constexpr std::string_view name = "mean_loss";
  using Shape = NoShape;
  struct Attributes {
    static constexpr std::string_view names = "count";
    std::int64_t count = 1;  // number of losses in the sum
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Computes sum += loss, so that the host need not read the loss of every step.
//   shape     unused
//   operands  loss (fp32 [1]), sum (fp32 [1])
struct AccumulateLoss {
  static constexpr std::string_view name = "accumulate_loss";
  using Shape = NoShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Records a step's loss, the device's clock and the cycle counter of a multiprocessor, and counts
// the step.
//   shape     rows = row losses
//   operands  row_losses (fp32 [rows]), loss (fp32 [1]), history (fp32 [capacity]), stamps (uint64
//             [capacity], nanoseconds), counter (uint64 [1]), cycles (uint64 [capacity, 2]: the
//             cycle counter of the multiprocessor that ran this, and that multiprocessor's number;
//             counters of different ones do not compare)
// loss = sum(row_losses) / rows; the attribute rows_of_mean replaces the divisor, to leave out rows
// of padding. The entries of history, stamps and cycles are written at index counter % capacity;
// then counter += 1. The host has no device clock: the reference writes stamp 0 and cycles 0, 0.
struct ReportLoss {
  static constexpr std::string_view name = "report_loss";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "rows";
    Size rows = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    static constexpr std::string_view names = "capacity rows_of_mean";
    std::int64_t capacity = 1;
    std::int64_t rows_of_mean = 0;  // 0: the rows of the launch
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

constexpr std::int64_t rows_of_loss(const kernels::ReportLoss::Shape& shape,
                                    const kernels::ReportLoss::Attributes& attributes) {
  const std::int64_t rows = attributes.rows_of_mean;
  return rows > 0 ? rows : shape.rows;
}

std::vector<Kernel> loss_kernels();

}  // namespace stepgate
