// SPDX-License-Identifier: MIT
// Softmax cross-entropy of each row with its label, and the gradient of the mean over rows.
//   shape     rows; columns = classes
//   cross_entropy    scaled_cross_entropy
//   operands  cross_entropy: logits, labels (int32 [rows], each in [0, columns)), gradient,
//             row_losses (fp32 [rows])
//             scaled_cross_entropy: logits, labels, scale (fp32 [1]), gradient, row_losses
// gradient[r][c] = scale (softmax(logits[r])[c] - (c == labels[r])) / rows with a scale of 1 where
// there is none; gradient may be logits. The losses are not scaled: a scale keeps the gradients of
// fp16 above its smallest numbers.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

Kernel cross_entropy_kernel();
Kernel scaled_cross_entropy_kernel();

// Only in CUDA builds.
Launch prepare_cross_entropy(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);
Launch prepare_scaled_cross_entropy(const KernelShape&, DType, const KernelScalars&,
                                    const LaunchContext&);

}  // namespace stepgate
