// SPDX-License-Identifier: MIT
// Operands, work and host references of the input kernels; input.h has their meaning and shapes.
#include "kernels/input/input.h"

#include <bit>

#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr auto decode_operands = operands_of<kernels::Decode>({
    {"bytes", Access::read, extent::elements, OperandFormat::byte},
    {"words", Access::write, extent::elements, OperandFormat::single},
});

// The reference value: computed in double and rounded to float once.
constexpr float rounded_once(int byte) {
  return static_cast<float>((2 * byte - 255) / 255.0);
}

constexpr bool every_byte_is_rounded_once() {
  for (int byte = 0; byte < 256; ++byte) {
    const double doubled = 2 * byte - 255;
    // The result of a fused multiply-add, which does not round the product. In double, none of
    // these operations rounds.
    const auto in_one_instruction =
        static_cast<float>(doubled * 0x1.01p-8 + doubled * 0x1.0101p-24);
    if (decoded(static_cast<std::uint8_t>(byte)) != rounded_once(byte) ||
        in_one_instruction != rounded_once(byte))
      return false;
  }
  return true;
}
static_assert(every_byte_is_rounded_once());

void decode_reference(const CallOf<kernels::Decode>& call) {
  const auto* bytes = static_cast<const std::uint8_t*>(call.buffers[0]);
  auto* words = static_cast<float*>(call.buffers[1]);
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) words[i] = rounded_once(bytes[i]);
}

constexpr auto samples = [](const auto& s) { return s.samples; };
constexpr auto payload_words = [](const auto& s) { return s.samples * s.words; };

constexpr auto ingest_operands = operands_of<kernels::Ingest>({
    {"payload", Access::read, payload_words, OperandFormat::single},
    {"features", Access::write, [](const auto& s) { return s.samples * s.features; }},
    {"labels", Access::write, samples, OperandFormat::index},
});

// `word_at` returns word i of the payload as a float.
template <class WordAt>
void reference_of_ingest(const CallOf<kernels::Ingest>& call, WordAt word_at) {
  const auto [samples, features, words] = call.shape;
  const auto classes = static_cast<std::uint64_t>(classes_of(call.shape, call.attributes));
  auto* labels = static_cast<std::int32_t*>(call.buffers[2]);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::int64_t first = sample * words;
    for (std::int64_t feature = 0; feature < features; ++feature) {
      double sum = 0;
      std::int64_t count = 0;
      for (std::int64_t word = feature; word < words - 1; word += features, ++count) {
        sum += word_at(first + word);
      }
      set_number(call.buffers[1], call.dtype, sample * features + feature,
                 sum / static_cast<double>(count));
    }
    const auto bits = std::bit_cast<std::uint32_t>(word_at(first + words - 1));
    labels[sample] = static_cast<std::int32_t>(bits % classes);
  }
}

void ingest_reference(const CallOf<kernels::Ingest>& call) {
  const auto* payload = static_cast<const float*>(call.buffers[0]);
  reference_of_ingest(call, [=](std::int64_t i) { return payload[i]; });
}

constexpr auto decode_images_operands = operands_of<kernels::DecodeImages>({
    {"bytes", Access::read, payload_words, OperandFormat::byte},
    {"images", Access::write, [](const auto& s) { return s.samples * s.features; }},
    {"labels", Access::write, samples, OperandFormat::index},
});

void decode_images_reference(const CallOf<kernels::DecodeImages>& call) {
  const auto* bytes = static_cast<const std::uint8_t*>(call.buffers[0]);
  reference_of_ingest(call, [=](std::int64_t i) { return rounded_once(bytes[i]); });
}

constexpr auto ingest_indices_operands = operands_of<kernels::IngestIndices>({
    {"payload", Access::read, payload_words, OperandFormat::word},
    {"indices", Access::write, [](const auto& s) { return s.samples * s.tables; },
     OperandFormat::index},
    {"labels", Access::write, samples, OperandFormat::index},
});

// The work of this kernel counts integer operations instead of flops: one exclusive or per word,
// and one remainder per folded word.
void ingest_indices_reference(const CallOf<kernels::IngestIndices>& call) {
  const auto [samples, tables, words] = call.shape;
  const auto [table_rows, classes, by_table] = call.attributes;
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

constexpr auto positions = [](const auto& s) { return s.samples * s.positions; };

constexpr auto ingest_tokens_operands = operands_of<kernels::IngestTokens>({
    {"payload", Access::read, payload_words, OperandFormat::word},
    {"tokens", Access::write, positions, OperandFormat::index},
    {"labels", Access::write, positions, OperandFormat::index},
});

// The work of this kernel counts integer operations instead of flops: one exclusive or per word,
// and one remainder per folded word.
void ingest_tokens_reference(const CallOf<kernels::IngestTokens>& call) {
  const auto [samples, positions, words] = call.shape;
  const auto vocabulary = static_cast<std::uint32_t>(call.attributes.vocabulary);
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
  return {
      row<kernels::Decode, decode_reference>(decode_operands, flops_an_element<2>),
      row<kernels::Ingest, ingest_reference>(
          ingest_operands,
          [](const auto& shape) { return shape.samples * (shape.words - 1 + shape.features); }),
      // Two for each decoded byte, besides those of ingest.
      row<kernels::DecodeImages, decode_images_reference>(
          decode_images_operands,
          [](const auto& shape) { return shape.samples * (3 * shape.words - 1 + shape.features); }),
      row<kernels::IngestIndices, ingest_indices_reference>(
          ingest_indices_operands,
          [](const auto& shape) { return shape.samples * (shape.words + shape.tables + 1); }),
      row<kernels::IngestTokens, ingest_tokens_reference>(
          ingest_tokens_operands,
          [](const auto& shape) { return shape.samples * (shape.words + shape.positions + 1); })};
}

}  // namespace stepgate
