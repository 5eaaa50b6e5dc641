// SPDX-License-Identifier: MIT
// Softmax of each row of square matrices of scores up to its diagonal: a token sees itself and
// those before it.
//   shape     rows = G * T; columns = T; groups = G matrices
//   operands  scores ([G][T][T]), probabilities ([G][T][T]; may be scores)
// Row r of a matrix is softmax(scale * scores[r][0 .. r]), then zeros. A row's visible part counts
// 5 flops an element (scale, subtract, exponential, sum, divide), (T + 1) / 2 elements on average.
// The CUDA side reads no score behind the diagonal.
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace causal_softmax_scalar {
constexpr std::size_t scale = 0;
}

Kernel causal_softmax_kernel();

// Only in CUDA builds.
Launch prepare_causal_softmax(const KernelShape&, DType, const KernelScalars&,
                              const LaunchContext&);

}  // namespace stepgate
