// SPDX-License-Identifier: MIT
// The host side of bias_gradient: operands, work and the reference. Meaning and shapes:
// bias_gradient.h.
#include "kernels/bias_gradient/bias_gradient.h"

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand bias_gradient_operands[] = {
    {"dy", Access::read},
    {"db", Access::read_write, bias_gradient_scalar::accumulate},
};

bool accumulates_bias_gradient(const KernelScalars& scalars) {
  return scalars[bias_gradient_scalar::accumulate] != 0;
}

// --- work ----------------------------------------------------------------------------------------

KernelWork bias_gradient_work(const KernelShape& shape, DType dtype, const KernelScalars& scalars) {
  const std::int64_t elements = shape.rows * shape.columns;
  const std::int64_t read = elements + (accumulates_bias_gradient(scalars) ? shape.columns : 0);
  return {.bytes_read = read * bytes_of(dtype),
          .bytes_written = shape.columns * bytes_of(dtype),
          .flops = elements};
}

// --- reference -----------------------------------------------------------------------------------

void bias_gradient_reference(const KernelCall& call) {
  const std::int64_t rows = call.shape.rows;
  const std::int64_t columns = call.shape.columns;
  for (std::int64_t column = 0; column < columns; ++column) {
    double sum = accumulates_bias_gradient(call.scalars)
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

Kernel bias_gradient_kernel() {
  return {"bias_gradient", bias_gradient_operands, bias_gradient_work, bias_gradient_reference,
          in_cuda_builds<prepare_bias_gradient>()};
}

}  // namespace stepgate
