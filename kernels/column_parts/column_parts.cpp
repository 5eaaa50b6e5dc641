// SPDX-License-Identifier: MIT
// The host side of column_parts: operands, work and the reference. Meaning and shapes:
// column_parts.h.
#include "kernels/column_parts/column_parts.h"

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand column_parts_operands[] = {
    {"dy", Access::read},
    {"partials", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork column_parts_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t elements = shape.rows * shape.columns;
  return {.bytes_read = elements * bytes_of(dtype),
          .bytes_written = shape.depth * shape.columns * 4,
          .flops = elements};
}

// --- reference -----------------------------------------------------------------------------------

void column_parts_reference(const KernelCall& call) {
  const auto [rows, columns, parts, unused] = call.shape;
  auto* partials = static_cast<float*>(call.buffers[1]);
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (std::int64_t row = part; row < rows; row += parts) {
        sum += number_at(call.buffers[0], call.dtype, row * columns + column);
      }
      partials[part * columns + column] = static_cast<float>(sum);
    }
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel column_parts_kernel() {
  return {"column_parts", column_parts_operands, column_parts_work, column_parts_reference,
          in_cuda_builds<prepare_column_parts>()};
}

}  // namespace stepgate
