// SPDX-License-Identifier: MIT
// The host side of sum_parts: operands, work and the reference. Meaning and shapes: sum_parts.h.
#include "kernels/sum_parts/sum_parts.h"

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand sum_parts_operands[] = {
    {"partials", Access::read},
    {"sums", Access::read_write, sum_parts_scalar::accumulate},
};

bool accumulates_sum(const KernelScalars& scalars) {
  return scalars[sum_parts_scalar::accumulate] != 0;
}

// --- work ----------------------------------------------------------------------------------------

KernelWork sum_parts_work(const KernelShape& shape, DType dtype, const KernelScalars& scalars) {
  const std::int64_t elements = shape.depth * shape.columns;
  const std::int64_t sums = shape.columns * bytes_of(dtype);
  return {.bytes_read = elements * 4 + (accumulates_sum(scalars) ? sums : 0),
          .bytes_written = sums,
          .flops = elements};
}

// --- reference -----------------------------------------------------------------------------------

void sum_parts_reference(const KernelCall& call) {
  const auto* partials = static_cast<const float*>(call.buffers[0]);
  for (std::int64_t column = 0; column < call.shape.columns; ++column) {
    double sum =
        accumulates_sum(call.scalars) ? number_at(call.buffers[1], call.dtype, column) : 0.0;
    for (std::int64_t part = 0; part < call.shape.depth; ++part) {
      sum += partials[part * call.shape.columns + column];
    }
    set_number(call.buffers[1], call.dtype, column, sum);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel sum_parts_kernel() {
  return {"sum_parts", sum_parts_operands, sum_parts_work, sum_parts_reference,
          in_cuda_builds<prepare_sum_parts>()};
}

}  // namespace stepgate
