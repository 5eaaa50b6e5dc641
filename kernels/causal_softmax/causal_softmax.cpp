// SPDX-License-Identifier: MIT
// The host side of causal_softmax: operands, work and the reference. Meaning and shapes:
// causal_softmax.h.
#include "kernels/causal_softmax/causal_softmax.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand causal_softmax_operands[] = {
    {"scores", Access::read, extent::elements},
    {.name = "probabilities",
     .access = Access::write,
     .elements = extent::elements,
     .may_replace = 0},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize causal_softmax_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 5 * shape.rows * (shape.columns + 1) / 2;
}

// --- reference -----------------------------------------------------------------------------------

void causal_softmax_reference(const KernelCall& call) {
  const std::int64_t columns = call.shape.columns;
  const double scale = call.attributes.as<kernels::CausalSoftmax>().scale;
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const std::int64_t visible = row % columns + 1;
    // A copy, since the probabilities may be written over the scores.
    std::vector<double> scores;
    for (std::int64_t c = 0; c < visible; ++c) {
      scores.push_back(scale * number_at(call.buffers[0], call.dtype, row * columns + c));
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - largest);
    for (std::int64_t c = 0; c < columns; ++c) {
      set_number(call.buffers[1], call.dtype, row * columns + c,
                 c < visible ? std::exp(scores[c] - largest) / sum : 0.0);
    }
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> causal_softmax_kernels() {
  return {{kernels::CausalSoftmax::name, causal_softmax_operands, causal_softmax_flops,
           causal_softmax_reference, in_cuda_builds<prepare_causal_softmax>()}};
}

}  // namespace stepgate
