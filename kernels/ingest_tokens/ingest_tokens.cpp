// SPDX-License-Identifier: MIT
// The host side of ingest_tokens: operands, work and the reference. Meaning and shapes:
// ingest_tokens.h.
#include "kernels/ingest_tokens/ingest_tokens.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand ingest_tokens_operands[] = {
    {"payload", Access::read, extent::rows_by_depth, OperandFormat::word},
    {"tokens", Access::write, extent::elements, OperandFormat::label},
    {"labels", Access::write, extent::elements, OperandFormat::label},
};

// --- work ----------------------------------------------------------------------------------------

// Integer operations: an exclusive or a word, a remainder a folded word.
CheckedSize ingest_tokens_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.rows * shape.depth + shape.rows * (shape.columns + 1);
}

// --- reference -----------------------------------------------------------------------------------

void ingest_tokens_reference(const KernelCall& call) {
  const auto [samples, positions, words, unused] = call.shape;
  const auto vocabulary =
      static_cast<std::uint32_t>(call.attributes.as<kernels::IngestTokens>().vocabulary);
  const std::int64_t labelled = labelled_positions(call.shape, call.attributes);
  const auto* payload = static_cast<const std::uint32_t*>(call.buffers[0]);
  auto* tokens = static_cast<std::int32_t*>(call.buffers[1]);
  auto* labels = static_cast<std::int32_t*>(call.buffers[2]);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    for (std::int64_t position = 0; position <= positions; ++position) {
      std::uint32_t folded = 0;
      for (std::int64_t word = position; word < words; word += positions + 1) {
        folded ^= payload[sample * words + word];
      }
      const std::int32_t token = token_of(folded, vocabulary);
      if (position < positions) tokens[sample * positions + position] = token;
      if (position > 0)
        labels[sample * positions + position - 1] = position <= labelled ? token : label_of_padding;
    }
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> ingest_tokens_kernels() {
  return {{kernels::IngestTokens::name, ingest_tokens_operands, ingest_tokens_flops,
           ingest_tokens_reference, in_cuda_builds<prepare_ingest_tokens>()}};
}

}  // namespace stepgate
