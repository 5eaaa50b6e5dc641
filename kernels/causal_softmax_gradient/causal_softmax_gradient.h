// SPDX-License-Identifier: MIT
// Gradient of causal_softmax with respect to its scores.
//   shape     rows = G * T; columns = T; groups = G matrices
//   operands  probabilities ([G][T][T]), d_probabilities ([G][T][T]), d_scores ([G][T][T]; may be
//             d_probabilities)
// d_scores[r][c] = scale * p[r][c] * (dp[r][c] - sum over the visible i of p[r][i] * dp[r][i]) for
// c <= r, else 0. A row's visible part counts 5 flops an element (multiply-add, subtract, two
// multiplications), (T + 1) / 2 elements on average. The CUDA side reads nothing behind the
// diagonal.
#pragma once

#include "kernels/causal_softmax/causal_softmax.h"
#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct CausalSoftmaxGradient {
  static constexpr std::string_view name = "causal_softmax_gradient";
  using Attributes = CausalSoftmax::Attributes;
};

}  // namespace kernels

std::vector<Kernel> causal_softmax_gradient_kernels();

// Only in CUDA builds.
Launch prepare_causal_softmax_gradient(const KernelShape&, DType, const KernelAttributes&,
                                       const LaunchContext&);

}  // namespace stepgate
