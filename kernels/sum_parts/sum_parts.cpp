// SPDX-License-Identifier: MIT
// The host side of sum_parts: operands, work and the reference. Meaning and shapes: sum_parts.h.
#include "kernels/sum_parts/sum_parts.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

bool accumulates_sum(const KernelAttributes& attributes) {
  return attributes.as<kernels::SumParts>().accumulate;
}

constexpr KernelOperand sum_parts_operands[] = {
    {"partials", Access::read, extent::depth_by_columns, OperandFormat::single},
    {.name = "sums",
     .access = Access::read_write,
     .elements = extent::columns,
     .accumulates = accumulates_sum},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize sum_parts_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.depth * shape.columns;
}

// --- reference -----------------------------------------------------------------------------------

void sum_parts_reference(const KernelCall& call) {
  const auto* partials = static_cast<const float*>(call.buffers[0]);
  for (std::int64_t column = 0; column < call.shape.columns; ++column) {
    double sum =
        accumulates_sum(call.attributes) ? number_at(call.buffers[1], call.dtype, column) : 0.0;
    for (std::int64_t part = 0; part < call.shape.depth; ++part) {
      sum += partials[part * call.shape.columns + column];
    }
    set_number(call.buffers[1], call.dtype, column, sum);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> sum_parts_kernels() {
  return {{kernels::SumParts::name, sum_parts_operands, sum_parts_flops, sum_parts_reference,
           in_cuda_builds<prepare_sum_parts>()}};
}

}  // namespace stepgate
