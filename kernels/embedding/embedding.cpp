// SPDX-License-Identifier: MIT
// Operands, work and host references of the embedding kernels; embedding.h has their meaning and
// shapes.
#include "kernels/embedding/embedding.h"

#include <algorithm>
#include <map>
#include <vector>

#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr auto table = [](const auto& s) { return s.table_rows * s.columns; };
constexpr auto table_rows = [](const auto& s) { return s.table_rows; };
// At most as many rows of the table as there are tokens are counted; equal tokens are not known
// here.
constexpr auto table_touched = [](const auto& s) {
  return std::min(s.rows, s.table_rows) * s.columns;
};

constexpr auto embedding_operands = operands_of<kernels::Embedding>({
    {.name = "tokens",
     .access = Access::read,
     .elements = extent::rows,
     .format = OperandFormat::index,
     .below = table_rows},
    {.name = "table", .access = Access::read, .elements = table, .touched = table_touched},
    {.name = "positions",
     .access = Access::read,
     .elements = [](const auto& s) { return s.positions * s.columns; },
     .touched = [](const auto& s) { return std::min(s.rows, s.positions) * s.columns; }},
    {"x", Access::write, extent::elements},
});

constexpr auto token_embedding_operands = operands_of<kernels::TokenEmbedding>({
    {.name = "tokens",
     .access = Access::read,
     .elements = extent::rows,
     .format = OperandFormat::index,
     .below = table_rows},
    {.name = "table", .access = Access::read, .elements = table, .touched = table_touched},
    {"x", Access::write, extent::elements},
});

void embedding_reference(const CallOf<kernels::Embedding>& call) {
  const std::int64_t columns = call.shape.columns;
  const auto* tokens = static_cast<const std::int32_t*>(call.buffers[0]);
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const std::int64_t entry = tokens[row] * columns;
    const std::int64_t position = row % call.shape.positions * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      set_number(call.buffers[3], call.dtype, row * columns + c,
                 number_at(call.buffers[1], call.dtype, entry + c) +
                     number_at(call.buffers[2], call.dtype, position + c));
    }
  }
}

void token_embedding_reference(const CallOf<kernels::TokenEmbedding>& call) {
  const std::int64_t columns = call.shape.columns;
  const auto* tokens = static_cast<const std::int32_t*>(call.buffers[0]);
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const std::int64_t entry = tokens[i / columns] * columns;
    set_number(call.buffers[2], call.dtype, i,
               number_at(call.buffers[1], call.dtype, entry + i % columns));
  }
}

constexpr auto embedding_gradient_operands = operands_of<kernels::EmbeddingGradient>({
    {.name = "tokens",
     .access = Access::read,
     .elements = extent::rows,
     .format = OperandFormat::index,
     .below = table_rows},
    {"dx", Access::read, extent::elements},
    {.name = "d_table", .access = Access::read_write, .elements = table, .touched = table_touched},
});

void embedding_gradient_reference(const CallOf<kernels::EmbeddingGradient>& call) {
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
  return {
      row<kernels::Embedding, embedding_reference>(embedding_operands, flops_an_element<1>),
      row<kernels::TokenEmbedding, token_embedding_reference>(token_embedding_operands, no_flops),
      row<kernels::EmbeddingGradient, embedding_gradient_reference>(embedding_gradient_operands,
                                                                    flops_an_element<1>)};
}

}  // namespace stepgate
