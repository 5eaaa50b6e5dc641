// SPDX-License-Identifier: MIT
// Operands, work and references of the family on the host; the header has meaning and shapes.
#include "kernels/embedding/embedding.h"

#include <algorithm>
#include <map>
#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

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

CheckedSize embedding_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

CheckedSize token_embedding_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

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

CheckedSize embedding_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

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

std::vector<Kernel> embedding_kernels() {
  return {{kernels::Embedding::name, embedding_operands, embedding_flops, embedding_reference,
           in_cuda_builds<prepare_embedding>()},
          {kernels::TokenEmbedding::name, token_embedding_operands, token_embedding_flops,
           token_embedding_reference, in_cuda_builds<prepare_token_embedding>()},
          {kernels::EmbeddingGradient::name, embedding_gradient_operands, embedding_gradient_flops,
           embedding_gradient_reference, in_cuda_builds<prepare_embedding_gradient>()}};
}

}  // namespace stepgate
