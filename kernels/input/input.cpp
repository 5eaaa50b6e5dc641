// SPDX-License-Identifier: MIT
// Operands, work and references of the family on the host; the header has meaning and shapes.
#include "kernels/input/input.h"

#include <bit>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr KernelOperand decode_operands[] = {
    {"bytes", Access::read, extent::elements, OperandFormat::byte},
    {"words", Access::write, extent::elements, OperandFormat::single},
};

// Each number takes a multiplication and a subtraction.
CheckedSize decode_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 2 * elements_of(shape);
}

// In double, rounded once.
constexpr float rounded_once(int byte) {
  return static_cast<float>((2 * byte - 255) / 255.0);
}

constexpr bool every_byte_is_rounded_once() {
  for (int byte = 0; byte < 256; ++byte) {
    const double doubled = 2 * byte - 255;
    // As a multiply-add does, which rounds no product: in double nothing here is rounded.
    const auto in_one_instruction =
        static_cast<float>(doubled * 0x1.01p-8 + doubled * 0x1.0101p-24);
    if (decoded(static_cast<std::uint8_t>(byte)) != rounded_once(byte) ||
        in_one_instruction != rounded_once(byte))
      return false;
  }
  return true;
}
static_assert(every_byte_is_rounded_once());

void decode_reference(const KernelCall& call) {
  const auto* bytes = static_cast<const std::uint8_t*>(call.buffers[0]);
  auto* words = static_cast<float*>(call.buffers[1]);
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) words[i] = rounded_once(bytes[i]);
}

constexpr KernelOperand ingest_operands[] = {
    {"payload", Access::read, extent::rows_by_depth, OperandFormat::single},
    {"features", Access::write, extent::elements},
    {"labels", Access::write, extent::rows, OperandFormat::label},
};

CheckedSize ingest_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.rows * (shape.depth - 1) + elements_of(shape);
}

void ingest_reference(const KernelCall& call) {
  const auto [samples, features, words, unused] = call.shape;
  const auto* payload = static_cast<const float*>(call.buffers[0]);
  auto* labels = static_cast<std::int32_t*>(call.buffers[2]);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const float* row = payload + sample * words;
    for (std::int64_t feature = 0; feature < features; ++feature) {
      double sum = 0;
      std::int64_t count = 0;
      for (std::int64_t word = feature; word < words - 1; word += features, ++count) {
        sum += row[word];
      }
      set_number(call.buffers[1], call.dtype, sample * features + feature,
                 sum / static_cast<double>(count));
    }
    const auto bits = std::bit_cast<std::uint32_t>(row[words - 1]);
    labels[sample] = static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(features));
  }
}

constexpr KernelOperand ingest_indices_operands[] = {
    {"payload", Access::read, extent::rows_by_depth, OperandFormat::word},
    {"indices", Access::write, extent::elements, OperandFormat::label},
    {"labels", Access::write, extent::rows, OperandFormat::label},
};

// Integer operations: an exclusive or a word, a remainder a folded word.
CheckedSize ingest_indices_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.rows * shape.depth + shape.rows * (shape.columns + 1);
}

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

constexpr KernelOperand ingest_tokens_operands[] = {
    {"payload", Access::read, extent::rows_by_depth, OperandFormat::word},
    {"tokens", Access::write, extent::elements, OperandFormat::label},
    {"labels", Access::write, extent::elements, OperandFormat::label},
};

// Integer operations: an exclusive or a word, a remainder a folded word.
CheckedSize ingest_tokens_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.rows * shape.depth + shape.rows * (shape.columns + 1);
}

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

std::vector<Kernel> input_kernels() {
  return {{kernels::Decode::name, decode_operands, decode_flops, decode_reference,
           in_cuda_builds<prepare_decode>()},
          {kernels::Ingest::name, ingest_operands, ingest_flops, ingest_reference,
           in_cuda_builds<prepare_ingest>()},
          {kernels::IngestIndices::name, ingest_indices_operands, ingest_indices_flops,
           ingest_indices_reference, in_cuda_builds<prepare_ingest_indices>()},
          {kernels::IngestTokens::name, ingest_tokens_operands, ingest_tokens_flops,
           ingest_tokens_reference, in_cuda_builds<prepare_ingest_tokens>()}};
}

}  // namespace stepgate
