// SPDX-License-Identifier: MIT
// Softmax cross-entropy of each row with its label, and the gradient of the mean over rows.
//   shape     rows; columns = classes
//   operands  logits, labels (int32 [rows], each in [0, columns)), gradient, row_losses (fp32
//   [rows])
// gradient[r][c] = (softmax(logits[r])[c] - (c == labels[r])) / rows; gradient may be logits.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

Kernel cross_entropy_kernel();

// Only in CUDA builds.
Launch prepare_cross_entropy(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
