// SPDX-License-Identifier: MIT
// The host side of relu_gradient: operands, work and the reference. Meaning and shapes:
// relu_gradient.h.
#include "kernels/relu_gradient/relu_gradient.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand relu_gradient_operands[] = {
    {"y", Access::read, extent::elements},
    {"dy", Access::read, extent::elements},
    {.name = "dx", .access = Access::write, .elements = extent::elements, .may_replace = 1},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize relu_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

void relu_gradient_reference(const KernelCall& call) {
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const bool passes = number_at(call.buffers[0], call.dtype, i) > 0;
    set_number(call.buffers[2], call.dtype, i,
               passes ? number_at(call.buffers[1], call.dtype, i) : 0.0);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> relu_gradient_kernels() {
  return {{kernels::ReluGradient::name, relu_gradient_operands, relu_gradient_flops,
           relu_gradient_reference, in_cuda_builds<prepare_relu_gradient>()}};
}

}  // namespace stepgate
