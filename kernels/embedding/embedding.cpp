// SPDX-License-Identifier: MIT
// The host side of embedding and token_embedding: operands, work and the references. Meaning and
// shapes: embedding.h.
#include "kernels/embedding/embedding.h"

#include <algorithm>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

CheckedSize positions(const CheckedShape& shape, DType, const KernelAttributes&) {
  return shape.groups * shape.columns;
}

// Counts as many rows of the tables as there are tokens, at most: which of them are equal, only the
// data knows.
CheckedSize table_touched(const CheckedShape& shape, DType, const KernelAttributes&) {
  return std::min(shape.rows, shape.depth) * shape.columns;
}

CheckedSize positions_touched(const CheckedShape& shape, DType, const KernelAttributes&) {
  return std::min(shape.rows, shape.groups) * shape.columns;
}

constexpr KernelOperand embedding_operands[] = {
    {"tokens", Access::read, extent::rows, OperandFormat::token},
    {.name = "table",
     .access = Access::read,
     .elements = extent::depth_by_columns,
     .touched = table_touched},
    {.name = "positions",
     .access = Access::read,
     .elements = positions,
     .touched = positions_touched},
    {"x", Access::write, extent::elements},
};

constexpr KernelOperand token_embedding_operands[] = {
    {"tokens", Access::read, extent::rows, OperandFormat::token},
    {.name = "table",
     .access = Access::read,
     .elements = extent::depth_by_columns,
     .touched = table_touched},
    {"x", Access::write, extent::elements},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize embedding_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

CheckedSize token_embedding_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

// --- references ----------------------------------------------------------------------------------

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

void token_embedding_reference(const KernelCall& call) {
  const std::int64_t columns = call.shape.columns;
  const auto* tokens = static_cast<const std::int32_t*>(call.buffers[0]);
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const std::int64_t entry = tokens[i / columns] * columns;
    set_number(call.buffers[2], call.dtype, i,
               number_at(call.buffers[1], call.dtype, entry + i % columns));
  }
}

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

std::vector<Kernel> embedding_kernels() {
  return {{kernels::Embedding::name, embedding_operands, embedding_flops, embedding_reference,
           in_cuda_builds<prepare_embedding>()},
          {kernels::TokenEmbedding::name, token_embedding_operands, token_embedding_flops,
           token_embedding_reference, in_cuda_builds<prepare_token_embedding>()}};
}

}  // namespace stepgate
