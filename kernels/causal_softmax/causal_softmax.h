// SPDX-License-Identifier: MIT
// Softmax of each row of square matrices of scores up to its diagonal: a token sees itself and
// those before it.
//   shape     rows = G * T; columns = T; groups = G matrices
//   operands  scores ([G][T][T]), probabilities ([G][T][T]; may be scores)
// Row r of a matrix is softmax(scale * scores[r][0 .. r]), then zeros. A row's visible part counts
// 5 flops an element (scale, subtract, exponential, sum, divide), (T + 1) / 2 elements on average.
// The CUDA side reads no score behind the diagonal.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct CausalSoftmax {
  static constexpr std::string_view name = "causal_softmax";
  struct Attributes {
    double scale = 1;
  };
};

}  // namespace kernels

std::vector<Kernel> causal_softmax_kernels();

// Only in CUDA builds.
Launch prepare_causal_softmax(const KernelShape&, DType, const KernelAttributes&,
                              const LaunchContext&);

}  // namespace stepgate
