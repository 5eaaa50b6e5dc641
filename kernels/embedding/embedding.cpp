// SPDX-License-Identifier: MIT
// The host side of embedding: operands, work and the reference. Meaning and shapes: embedding.h.
#include "kernels/embedding/embedding.h"

#include <algorithm>

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand embedding_operands[] = {
    {"tokens", Access::read},
    {"table", Access::read},
    {"positions", Access::read},
    {"x", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

// Of the table as many rows as there are tokens, at most: which of them are equal, only the data
// knows.
KernelWork embedding_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t rows_read =
      std::min(shape.rows, shape.depth) + std::min(shape.rows, shape.groups);
  return {.bytes_read = shape.rows * 4 + rows_read * shape.columns * bytes_of(dtype),
          .bytes_written = shape.rows * shape.columns * bytes_of(dtype),
          .flops = shape.rows * shape.columns};
}

// --- reference -----------------------------------------------------------------------------------

void embedding_reference(const KernelCall& call) {
  const std::int64_t columns = call.shape.columns;
  const auto* tokens = static_cast<const std::int32_t*>(call.buffers[0]);
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const std::int64_t entry = tokens[row] * columns;
    const std::int64_t position = row % call.shape.groups * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      set_number(call.buffers[3], call.dtype, row * columns + c,
                 number_at(call.buffers[1], call.dtype, entry + c) +
                     number_at(call.buffers[2], call.dtype, position + c));
    }
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel embedding_kernel() {
  return {"embedding", embedding_operands, embedding_work, embedding_reference,
          in_cuda_builds<prepare_embedding>()};
}

}  // namespace stepgate
