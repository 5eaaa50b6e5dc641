// SPDX-License-Identifier: MIT
// The host side of column_parts: operands, work and the reference. Meaning and shapes:
// column_parts.h.
#include "kernels/column_parts/column_parts.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand column_parts_operands[] = {
    {"dy", Access::read, extent::elements},
    {"partials", Access::write, extent::depth_by_columns, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize column_parts_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
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

std::vector<Kernel> column_parts_kernels() {
  return {{kernels::ColumnParts::name, column_parts_operands, column_parts_flops,
           column_parts_reference, in_cuda_builds<prepare_column_parts>()}};
}

}  // namespace stepgate
