// SPDX-License-Identifier: MIT
// Operands, work and host references of the heads kernels; heads.h has their meaning and shapes.
#include "kernels/heads/heads.h"

#include <cmath>

#include "kernels/attention/packed_heads.h"
#include "kernels/extents.h"
#include "kernels/heads/grouped_rows.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr auto all_parts = [](const auto& s, const auto& told) {
  return told.parts * elements_of(s);
};

constexpr auto split_heads_operands = operands_of<kernels::SplitHeads>({
    {"rows", Access::read, all_parts},
    {"heads", Access::write, all_parts},
});

void split_heads_reference(const CallOf<kernels::SplitHeads>& call) {
  const PackedHeads heads(call.shape);
  const std::int64_t parts = call.attributes.parts;
  for_each_matrix(heads, parts, [&](auto sequence, const auto& head, auto first) {
    const HeadNumbers numbers = heads.read(call.buffers[0], call.dtype, sequence, head);
    for (const double number : numbers) set_number(call.buffers[1], call.dtype, first++, number);
  });
}

constexpr auto merge_heads_operands = operands_of<kernels::MergeHeads>({
    {"heads", Access::read, all_parts},
    {"rows", Access::write, all_parts},
});

void merge_heads_reference(const CallOf<kernels::MergeHeads>& call) {
  const PackedHeads heads(call.shape);
  const std::int64_t parts = call.attributes.parts;
  for_each_matrix(heads, parts, [&](auto sequence, const auto& head, auto first) {
    HeadNumbers numbers(static_cast<std::size_t>(heads.tokens * heads.width));
    for (double& number : numbers) number = number_at(call.buffers[0], call.dtype, first++);
    heads.write(numbers, call.buffers[1], call.dtype, sequence, head);
  });
}

constexpr auto grouped_elements = [](const auto& s, const auto& told) {
  return elements_of(s) + 2 * (s.rows * (s.columns / s.heads) * told.kv_heads);
};
constexpr auto repeated = [](const auto& s) { return 3 * elements_of(s); };

constexpr auto repeat_heads_operands = operands_of<kernels::RepeatHeads>({
    {"grouped", Access::read, grouped_elements},
    {"rows", Access::write, repeated},
});

constexpr auto repeat_heads_gradient_operands = operands_of<kernels::RepeatHeadsGradient>({
    {"d_rows", Access::read, repeated},
    {"d_grouped", Access::write, grouped_elements},
});

// The sum over the H / kv_heads copies of each head takes one addition less than there are copies,
// for keys and for values.
constexpr auto repeat_heads_gradient_flops = [](const auto& s, const auto& told) {
  return 2 * s.rows * (s.columns / s.heads) * (s.heads - told.kv_heads);
};

void repeat_heads_reference(const CallOf<kernels::RepeatHeads>& call) {
  const auto rows = grouped_rows<std::int64_t>(call.shape, call.attributes);
  for (std::int64_t i = 0; i < rows.elements(); ++i) {
    set_number(call.buffers[1], call.dtype, i,
               number_at(call.buffers[0], call.dtype, rows.grouped(i)));
  }
}

void repeat_heads_gradient_reference(const CallOf<kernels::RepeatHeadsGradient>& call) {
  const auto rows = grouped_rows<std::int64_t>(call.shape, call.attributes);
  for (std::int64_t i = 0; i < rows.grouped_elements(); ++i) {
    double sum = 0;
    for (std::int64_t head = 0; head < rows.repetitions(i); ++head)
      sum += number_at(call.buffers[0], call.dtype, rows.first_repeated(i) + head * rows.width);
    set_number(call.buffers[1], call.dtype, i, sum);
  }
}

constexpr auto turned = [](const auto& s, const auto& told) {
  return s.rows * s.heads * told.width;
};

constexpr auto rope_operands = operands_of<kernels::Rope>({
    {.name = "rows", .access = Access::read_write, .elements = extent::elements, .touched = turned},
});

// A pair takes four multiplications and two additions. Sine and cosine are the same for all heads
// of a token and are not counted.
constexpr auto rope_flops = [](const auto& s, const auto& told) { return 3 * turned(s, told); };

void rope_reference(const CallOf<kernels::Rope>& call) {
  const auto& rope = call.attributes;
  const std::int64_t half = rope.width / 2;
  void* const rows = call.buffers[0];
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const auto position = static_cast<double>(row % call.shape.tokens);
    for (std::int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rope.width);
      const double angle = position * std::pow(rope.base, exponent);
      const double cosine = std::cos(angle);
      const double sine = rope.inverse ? -std::sin(angle) : std::sin(angle);
      for (std::int64_t head = 0; head < call.shape.heads; ++head) {
        const std::int64_t first = row * call.shape.columns + head * rope.width + i;
        const double x = number_at(rows, call.dtype, first);
        const double y = number_at(rows, call.dtype, first + half);
        set_number(rows, call.dtype, first, x * cosine - y * sine);
        set_number(rows, call.dtype, first + half, y * cosine + x * sine);
      }
    }
  }
}

}  // namespace

std::vector<Kernel> heads_kernels() {
  return {row<kernels::SplitHeads, split_heads_reference>(split_heads_operands, no_flops),
          row<kernels::MergeHeads, merge_heads_reference>(merge_heads_operands, no_flops),
          row<kernels::RepeatHeads, repeat_heads_reference>(repeat_heads_operands, no_flops),
          row<kernels::RepeatHeadsGradient, repeat_heads_gradient_reference>(
              repeat_heads_gradient_operands, repeat_heads_gradient_flops),
          row<kernels::Rope, rope_reference>(rope_operands, rope_flops)};
}

}  // namespace stepgate
