// SPDX-License-Identifier: MIT
// The host side of causal_softmax_gradient: operands, work and the reference. Meaning and shapes:
// causal_softmax_gradient.h.
#include "kernels/causal_softmax_gradient/causal_softmax_gradient.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand causal_softmax_gradient_operands[] = {
    {"probabilities", Access::read, extent::elements},
    {"d_probabilities", Access::read, extent::elements},
    {.name = "d_scores", .access = Access::write, .elements = extent::elements, .may_replace = 1},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize causal_softmax_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 5 * shape.rows * (shape.columns + 1) / 2;
}

// --- reference -----------------------------------------------------------------------------------

void causal_softmax_gradient_reference(const KernelCall& call) {
  const std::int64_t columns = call.shape.columns;
  const double scale = call.attributes.as<kernels::CausalSoftmaxGradient>().scale;
  const auto at = [&](std::size_t operand, std::int64_t index) {
    return number_at(call.buffers[operand], call.dtype, index);
  };
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const std::int64_t first = row * columns;
    const std::int64_t visible = row % columns + 1;
    double dot = 0;
    for (std::int64_t i = first; i < first + visible; ++i) dot += at(0, i) * at(1, i);
    for (std::int64_t i = first; i < first + columns; ++i) {
      const bool is_visible = i < first + visible;
      set_number(call.buffers[2], call.dtype, i,
                 is_visible ? scale * at(0, i) * (at(1, i) - dot) : 0.0);
    }
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> causal_softmax_gradient_kernels() {
  return {{kernels::CausalSoftmaxGradient::name, causal_softmax_gradient_operands,
           causal_softmax_gradient_flops, causal_softmax_gradient_reference,
           in_cuda_builds<prepare_causal_softmax_gradient>()}};
}

}  // namespace stepgate
