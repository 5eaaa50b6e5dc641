// SPDX-License-Identifier: MIT
// The host side of bias_activation: operands, work and the reference. Meaning and shapes:
// bias_activation.h.
#include "kernels/bias_activation/bias_activation.h"

#include <tuple>

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand bias_activation_operands[] = {
    {"x", Access::read},
    {"bias", Access::read},
    {"y", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork bias_activation_work(const KernelShape& shape, DType dtype,
                                const KernelScalars& scalars) {
  const std::int64_t elements = shape.rows * shape.columns;
  const std::int64_t operations_per_element =
      1 + (scalars[bias_activation_scalar::activation] != 0);
  return {.bytes_read = (elements + shape.columns) * bytes_of(dtype),
          .bytes_written = elements * bytes_of(dtype),
          .flops = elements * operations_per_element};
}

// --- reference -----------------------------------------------------------------------------------

void bias_activation_reference(const KernelCall& call) {
  const auto [x, bias, y] = std::tuple{call.buffers[0], call.buffers[1], call.buffers[2]};
  const bool relu = call.scalars[bias_activation_scalar::activation] != 0;
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const double sum =
        number_at(x, call.dtype, i) + number_at(bias, call.dtype, i % call.shape.columns);
    set_number(y, call.dtype, i, relu && sum < 0 ? 0.0 : sum);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel bias_activation_kernel() {
  return {"bias_activation", bias_activation_operands, bias_activation_work,
          bias_activation_reference, in_cuda_builds<prepare_bias_activation>()};
}

}  // namespace stepgate
