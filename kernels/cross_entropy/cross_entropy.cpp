// SPDX-License-Identifier: MIT
// The host side of cross_entropy and scaled_cross_entropy: operands, work and the reference.
// Meaning and shapes: cross_entropy.h.
#include "kernels/cross_entropy/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand cross_entropy_operands[] = {
    {"logits", Access::read, extent::elements},
    {"labels", Access::read, extent::rows, OperandFormat::label},
    {.name = "gradient", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"row_losses", Access::write, extent::rows, OperandFormat::single},
};

constexpr KernelOperand scaled_operands[] = {
    {"logits", Access::read, extent::elements},
    {"labels", Access::read, extent::rows, OperandFormat::label},
    {"scale", Access::read, extent::one, OperandFormat::single},
    {.name = "gradient", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"row_losses", Access::write, extent::rows, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

// maximum, subtract, exponential, sum, scale
CheckedSize cross_entropy_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 5 * elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

void differentiate(const KernelCall& call, double scale, void* gradient, float* row_losses) {
  const std::int64_t rows = call.shape.rows;
  const std::int64_t columns = call.shape.columns;
  const std::int64_t classes = classes_of(call.shape, call.attributes);
  const auto* labels = static_cast<const std::int32_t*>(call.buffers[1]);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t label = labels[row];
    if (label < 0) {
      row_losses[row] = 0;
      for (std::int64_t c = 0; c < columns; ++c)
        set_number(gradient, call.dtype, row * columns + c, 0);
      continue;
    }
    // A copy, since the gradient may be written over the logits.
    std::vector<double> logits(static_cast<std::size_t>(classes));
    for (std::int64_t c = 0; c < classes; ++c) {
      logits[c] = number_at(call.buffers[0], call.dtype, row * columns + c);
    }
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - largest);
    row_losses[row] = static_cast<float>(std::log(sum) + largest - logits[label]);
    for (std::int64_t c = classes; c < columns; ++c)
      set_number(gradient, call.dtype, row * columns + c, 0);
    for (std::int64_t c = 0; c < classes; ++c) {
      const double probability = std::exp(logits[c] - largest) / sum;
      set_number(gradient, call.dtype, row * columns + c,
                 scale * (probability - (c == label ? 1.0 : 0.0)) /
                     rows_of_mean(call.shape, call.attributes));
    }
  }
}

void cross_entropy_reference(const KernelCall& call) {
  differentiate(call, 1, call.buffers[2], static_cast<float*>(call.buffers[3]));
}

void scaled_reference(const KernelCall& call) {
  const float scale = *static_cast<const float*>(call.buffers[2]);
  differentiate(call, scale, call.buffers[3], static_cast<float*>(call.buffers[4]));
}

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

std::vector<Kernel> cross_entropy_kernels() {
  return {{kernels::CrossEntropy::name, cross_entropy_operands, cross_entropy_flops,
           cross_entropy_reference, in_cuda_builds<prepare_cross_entropy>()},
          {kernels::ScaledCrossEntropy::name, scaled_operands, cross_entropy_flops,
           scaled_reference, in_cuda_builds<prepare_scaled_cross_entropy>()}};
}

}  // namespace stepgate
