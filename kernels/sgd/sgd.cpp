// SPDX-License-Identifier: MIT
// The host side of sgd: operands, work and the reference. Meaning and shapes: sgd.h.
#include "kernels/sgd/sgd.h"

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand sgd_operands[] = {
    {"weights", Access::read_write},
    {"gradients", Access::read},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork sgd_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t parameters = shape.rows * shape.columns;
  return {.bytes_read = 2 * parameters * bytes_of(dtype),
          .bytes_written = parameters * bytes_of(dtype),
          .flops = 2 * parameters};
}

// --- reference -----------------------------------------------------------------------------------

void sgd_reference(const KernelCall& call) {
  const double learning_rate = call.scalars[sgd_scalar::learning_rate];
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    set_number(call.buffers[0], call.dtype, i,
               number_at(call.buffers[0], call.dtype, i) -
                   learning_rate * number_at(call.buffers[1], call.dtype, i));
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel sgd_kernel() {
  return {"sgd", sgd_operands, sgd_work, sgd_reference, in_cuda_builds<prepare_sgd>()};
}

}  // namespace stepgate
