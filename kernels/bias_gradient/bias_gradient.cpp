// SPDX-License-Identifier: MIT
// The host side of bias_gradient: operands, work and the reference. Meaning and shapes:
// bias_gradient.h.
#include "kernels/bias_gradient/bias_gradient.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

bool accumulates_bias_gradient(const KernelAttributes& attributes) {
  return attributes.as<kernels::BiasGradient>().accumulate;
}

constexpr KernelOperand bias_gradient_operands[] = {
    {"dy", Access::read, extent::elements},
    {.name = "db",
     .access = Access::read_write,
     .elements = extent::columns,
     .accumulates = accumulates_bias_gradient},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize bias_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

void bias_gradient_reference(const KernelCall& call) {
  const std::int64_t rows = call.shape.rows;
  const std::int64_t columns = call.shape.columns;
  for (std::int64_t column = 0; column < columns; ++column) {
    double sum = accumulates_bias_gradient(call.attributes)
                     ? number_at(call.buffers[1], call.dtype, column)
                     : 0.0;
    for (std::int64_t row = 0; row < rows; ++row) {
      sum += number_at(call.buffers[0], call.dtype, row * columns + column);
    }
    set_number(call.buffers[1], call.dtype, column, sum);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> bias_gradient_kernels() {
  return {{kernels::BiasGradient::name, bias_gradient_operands, bias_gradient_flops,
           bias_gradient_reference, in_cuda_builds<prepare_bias_gradient>()}};
}

}  // namespace stepgate
