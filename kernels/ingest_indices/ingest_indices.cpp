// SPDX-License-Identifier: MIT
// The host side of ingest_indices: operands, work and the reference. Meaning and shapes:
// ingest_indices.h.
#include "kernels/ingest_indices/ingest_indices.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/ingest_tokens/ingest_tokens.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand ingest_indices_operands[] = {
    {"payload", Access::read, extent::rows_by_depth, OperandFormat::word},
    {"indices", Access::write, extent::elements, OperandFormat::label},
    {"labels", Access::write, extent::rows, OperandFormat::label},
};

// --- work ----------------------------------------------------------------------------------------

// Integer operations: an exclusive or a word, a remainder a folded word.
CheckedSize ingest_indices_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.rows * shape.depth + shape.rows * (shape.columns + 1);
}

// --- reference -----------------------------------------------------------------------------------

void ingest_indices_reference(const KernelCall& call) {
  const auto [samples, tables, words, unused] = call.shape;
  const auto [table_rows, classes, by_table] = call.attributes.as<kernels::IngestIndices>();
  const auto* payload = static_cast<const std::uint32_t*>(call.buffers[0]);
  auto* indices = static_cast<std::int32_t*>(call.buffers[1]);
  auto* labels = static_cast<std::int32_t*>(call.buffers[2]);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    for (std::int64_t table = 0; table <= tables; ++table) {
      std::uint32_t folded = 0;
      for (std::int64_t word = table; word < words; word += tables + 1) {
        folded ^= payload[sample * words + word];
      }
      if (table == tables) {
        labels[sample] = token_of(folded, static_cast<std::uint32_t>(classes));
        continue;
      }
      const std::int32_t row = token_of(folded, static_cast<std::uint32_t>(table_rows));
      if (by_table) {
        indices[table * samples + sample] = row;
      } else {
        indices[sample * tables + table] = static_cast<std::int32_t>(table * table_rows + row);
      }
    }
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> ingest_indices_kernels() {
  return {{kernels::IngestIndices::name, ingest_indices_operands, ingest_indices_flops,
           ingest_indices_reference, in_cuda_builds<prepare_ingest_indices>()}};
}

}  // namespace stepgate
