// SPDX-License-Identifier: MIT
// The host side of relu_gradient: operands, work and the reference. Meaning and shapes:
// relu_gradient.h.
#include "kernels/relu_gradient/relu_gradient.h"

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand relu_gradient_operands[] = {
    {"y", Access::read},
    {"dy", Access::read},
    {"dx", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork relu_gradient_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t elements = shape.rows * shape.columns;
  return {.bytes_read = 2 * elements * bytes_of(dtype),
          .bytes_written = elements * bytes_of(dtype),
          .flops = elements};
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

Kernel relu_gradient_kernel() {
  return {"relu_gradient", relu_gradient_operands, relu_gradient_work, relu_gradient_reference,
          in_cuda_builds<prepare_relu_gradient>()};
}

}  // namespace stepgate
