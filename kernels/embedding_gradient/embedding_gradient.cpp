// SPDX-License-Identifier: MIT
// The host side of embedding_gradient: operands, work and the reference. Meaning and shapes:
// embedding_gradient.h.
#include "kernels/embedding_gradient/embedding_gradient.h"

#include <algorithm>
#include <map>
#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand embedding_gradient_operands[] = {
    {"tokens", Access::read},
    {"dx", Access::read},
    {"d_table", Access::read_write},
};

// --- work ----------------------------------------------------------------------------------------

// Of the table as many rows as there are tokens, at most: which of them are equal, only the data
// knows.
KernelWork embedding_gradient_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t elements = shape.rows * shape.columns;
  const std::int64_t touched = std::min(shape.rows, shape.depth) * shape.columns;
  return {.bytes_read = shape.rows * 4 + (elements + touched) * bytes_of(dtype),
          .bytes_written = touched * bytes_of(dtype),
          .flops = elements};
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

Kernel embedding_gradient_kernel() {
  return {"embedding_gradient", embedding_gradient_operands, embedding_gradient_work,
          embedding_gradient_reference, in_cuda_builds<prepare_embedding_gradient>()};
}

}  // namespace stepgate
