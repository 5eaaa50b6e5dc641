// SPDX-License-Identifier: MIT
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
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  struct Attributes {
    std::int64_t rows_of_mean = 0;  // 0: those of the launch
    std::int64_t classes = 0;       // 0: every column is one
  };
};

struct ScaledCrossEntropy {
  static constexpr std::string_view name = "scaled_cross_entropy";
  using Attributes = CrossEntropy::Attributes;
};

}  // namespace kernels

constexpr double rows_of_mean(const KernelShape& shape, const KernelAttributes& attributes) {
  const std::int64_t rows = attributes.as<kernels::CrossEntropy>().rows_of_mean;
  return static_cast<double>(rows > 0 ? rows : shape.rows);
}

constexpr std::int64_t classes_of(const KernelShape& shape, const KernelAttributes& attributes) {
  const std::int64_t classes = attributes.as<kernels::CrossEntropy>().classes;
  return classes > 0 ? classes : shape.columns;
}

std::vector<Kernel> cross_entropy_kernels();

// Only in CUDA builds.
Launch prepare_cross_entropy(const KernelShape&, DType, const KernelAttributes&,
                             const LaunchContext&);
Launch prepare_scaled_cross_entropy(const KernelShape&, DType, const KernelAttributes&,
                                    const LaunchContext&);

}  // namespace stepgate
