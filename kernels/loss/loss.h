// SPDX-License-Identifier: MIT
// The loss of a step, its gradient, and what becomes of it on the device. Launchers are in CUDA
// builds alone.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// Softmax cross-entropy of each row with its label, and the gradient of the mean over rows.
//   shape     rows; columns = classes, or more where the attribute says how many classes there are
//   cross_entropy    scaled_cross_entropy
//   operands  cross_entropy: logits, labels (int32 [rows], each in [0, classes), or negative where
//             the row is padding), gradient,
//             row_losses (fp32 [rows])
//             scaled_cross_entropy: logits, labels, scale (fp32 [1]), gradient, row_losses
// gradient[r][c] = scale (softmax(logits[r])[c] - (c == labels[r])) / rows with a scale of 1 where
// there is none, or over as many rows as it is told: the rest of a batch that is differentiated
// in parts. gradient may be logits. The losses are not scaled: a scale keeps the gradients of
// fp16 above its smallest numbers. Columns beyond the classes are read as no class: they have no
// part in the softmax, and their gradient is 0. So are the loss and the gradient of a row of
// padding (PyTorch's ignore_index); the mean is over `rows_of_mean` all the same.
struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  using Shape = MatrixShape;
  struct Attributes {
    std::int64_t rows_of_mean = 0;  // 0: those of the launch
    std::int64_t classes = 0;       // 0: every column is one
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

// mean = sum / count; sum = 0.
//   shape     unused
//   operands  sum (fp32 [1]), mean (fp32 [1])
struct MeanLoss {
  static constexpr std::string_view name = "mean_loss";
  using Shape = NoShape;
  struct Attributes {
    std::int64_t count = 1;  // of the losses in the sum
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// sum += loss, so that the host need not read the loss of every step.
//   shape     unused
//   operands  loss (fp32 [1]), sum (fp32 [1])
struct AccumulateLoss {
  static constexpr std::string_view name = "accumulate_loss";
  using Shape = NoShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Writes down a step's loss, the device's clock and the cycles of a multiprocessor, and counts the
// step.
//   shape     rows = row losses
//   operands  row_losses (fp32 [rows]), loss (fp32 [1]), history (fp32 [capacity]),
//             stamps (uint64 [capacity], nanoseconds), counter (uint64 [1]),
//             cycles (uint64 [capacity, 2]: the cycle counter of the multiprocessor that ran this,
//             and that multiprocessor's number; counters of different ones do not compare)
// loss = sum(row_losses) / rows, or over as many rows as it is told: those that are no padding;
// history, stamps and cycles get theirs at counter % capacity; counter += 1. The host has no device
// clock: the reference writes stamp 0 and cycles 0, 0.
struct ReportLoss {
  static constexpr std::string_view name = "report_loss";
  template <class Size>
  struct Sizes {
    Size rows = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    std::int64_t capacity = 1;
    std::int64_t rows_of_mean = 0;  // 0: those of the launch
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
