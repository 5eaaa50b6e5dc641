// SPDX-License-Identifier: MIT
// The host side of embedding_gradient: operands, work and the reference. Meaning and shapes:
// embedding_gradient.h.
#include "kernels/embedding_gradient/embedding_gradient.h"

#include <algorithm>
#include <map>
#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

// Counts as many rows of the table as there are tokens, at most: which of them are equal, only the
// data knows.
CheckedSize gradient_touched(const CheckedShape& shape, DType, const KernelAttributes&) {
  return std::min(shape.rows, shape.depth) * shape.columns;
}

constexpr KernelOperand embedding_gradient_operands[] = {
    {"tokens", Access::read, extent::rows, OperandFormat::token},
    {"dx", Access::read, extent::elements},
    {.name = "d_table",
     .access = Access::read_write,
     .elements = extent::depth_by_columns,
     .touched = gradient_touched},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize embedding_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

void embedding_gradient_reference(const KernelCall& call) {
  const std::int64_t columns = call.shape.columns;
  const auto* tokens = static_cast<const std::int32_t*>(call.buffers[0]);
  std::map<std::int32_t, std::vector<double>> sums;
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    std::vector<double>& sum = sums[tokens[row]];
    sum.resize(static_cast<std::size_t>(columns));
    for (std::int64_t c = 0; c < columns; ++c) {
      sum[c] += number_at(call.buffers[1], call.dtype, row * columns + c);
    }
  }
  for (const auto& [token, sum] : sums) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t i = token * columns + c;
      set_number(call.buffers[2], call.dtype, i,
                 number_at(call.buffers[2], call.dtype, i) + sum[c]);
    }
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> embedding_gradient_kernels() {
  return {{kernels::EmbeddingGradient::name, embedding_gradient_operands, embedding_gradient_flops,
           embedding_gradient_reference, in_cuda_builds<prepare_embedding_gradient>()}};
}

}  // namespace stepgate
