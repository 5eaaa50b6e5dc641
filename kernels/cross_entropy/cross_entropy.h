// SPDX-License-Identifier: MIT
// Softmax cross-entropy of each row with its label, and the gradient of the mean over rows.
//   shape     rows; columns = classes
//   cross_entropy    scaled_cross_entropy
//   operands  cross_entropy: logits, labels (int32 [rows], each in [0, columns)), gradient,
//             row_losses (fp32 [rows])
//             scaled_cross_entropy: logits, labels, scale (fp32 [1]), gradient, row_losses
// gradient[r][c] = scale (softmax(logits[r])[c] - (c == labels[r])) / rows with a scale of 1 where
// there is none, or over as many rows as a scalar says: the rest of a batch that is differentiated
// in parts. gradient may be logits. The losses are not scaled: a scale keeps the gradients of
// fp16 above its smallest numbers.
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace cross_entropy_scalar {
constexpr std::size_t rows_of_mean = 0;  // 0: those of the launch
}

constexpr double rows_of_mean(const KernelShape& shape, const KernelScalars& scalars) {
  const double rows = scalars[cross_entropy_scalar::rows_of_mean];
  return rows > 0 ? rows : static_cast<double>(shape.rows);
}

Kernel cross_entropy_kernel();
Kernel scaled_cross_entropy_kernel();

// Only in CUDA builds.
Launch prepare_cross_entropy(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);
Launch prepare_scaled_cross_entropy(const KernelShape&, DType, const KernelScalars&,
                                    const LaunchContext&);

}  // namespace stepgate
