// SPDX-License-Identifier: MIT
// Operands, work and references of the family on the host; the header has meaning and shapes.
#include "kernels/heads/heads.h"

#include <cmath>

#include "kernels/attention/packed_heads.h"
#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/heads/grouped_rows.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

CheckedSize split_heads_elements(const CheckedShape& shape, DType,
                                 const KernelAttributes& attributes) {
  return attributes.as<kernels::SplitHeads>().parts * shape.rows * shape.columns;
}

constexpr KernelOperand split_heads_operands[] = {
    {"rows", Access::read, split_heads_elements},
    {"heads", Access::write, split_heads_elements},
};

CheckedSize split_heads_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

void split_heads_reference(const KernelCall& call) {
  const PackedHeads heads(call.shape);
  const std::int64_t parts = call.attributes.as<kernels::SplitHeads>().parts;
  for_each_matrix(heads, parts, [&](auto sequence, auto head, auto part, auto first) {
    const HeadNumbers numbers =
        heads.read(call.buffers[0], call.dtype, sequence, head, part, parts);
    for (const double number : numbers) set_number(call.buffers[1], call.dtype, first++, number);
  });
}

CheckedSize merge_heads_elements(const CheckedShape& shape, DType,
                                 const KernelAttributes& attributes) {
  return attributes.as<kernels::MergeHeads>().parts * shape.rows * shape.columns;
}

constexpr KernelOperand merge_heads_operands[] = {
    {"heads", Access::read, merge_heads_elements},
    {"rows", Access::write, merge_heads_elements},
};

CheckedSize merge_heads_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

void merge_heads_reference(const KernelCall& call) {
  const PackedHeads heads(call.shape);
  const std::int64_t parts = call.attributes.as<kernels::MergeHeads>().parts;
  for_each_matrix(heads, parts, [&](auto sequence, auto head, auto part, auto first) {
    HeadNumbers numbers(static_cast<std::size_t>(heads.tokens * heads.width));
    for (double& number : numbers) number = number_at(call.buffers[0], call.dtype, first++);
    heads.write(numbers, call.buffers[1], call.dtype, sequence, head, part, parts);
  });
}

CheckedSize kv_elements(const CheckedShape& shape, const KernelAttributes& attributes) {
  return shape.rows * (shape.columns / shape.groups) *
         attributes.as<kernels::RepeatHeads>().kv_heads;
}

CheckedSize grouped_elements(const CheckedShape& shape, DType, const KernelAttributes& attributes) {
  return elements_of(shape) + 2 * kv_elements(shape, attributes);
}

constexpr KernelOperand repeat_heads_operands[] = {
    {"grouped", Access::read, grouped_elements},
    {"rows", Access::write, extent::packed_qkv},
};

constexpr KernelOperand repeat_heads_gradient_operands[] = {
    {"d_rows", Access::read, extent::packed_qkv},
    {"d_grouped", Access::write, grouped_elements},
};

CheckedSize repeat_heads_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

// All of the H heads of keys and values but the first of each group are added.
CheckedSize repeat_heads_gradient_flops(const CheckedShape& shape,
                                        const KernelAttributes& attributes) {
  const std::int64_t kv_heads = attributes.as<kernels::RepeatHeads>().kv_heads;
  return 2 * shape.rows * (shape.columns / shape.groups) * (shape.groups - kv_heads);
}

void repeat_heads_reference(const KernelCall& call) {
  const auto rows = grouped_rows<std::int64_t>(call.shape, call.attributes);
  for (std::int64_t i = 0; i < rows.elements(); ++i) {
    set_number(call.buffers[1], call.dtype, i,
               number_at(call.buffers[0], call.dtype, rows.grouped(i)));
  }
}

void repeat_heads_gradient_reference(const KernelCall& call) {
  const auto rows = grouped_rows<std::int64_t>(call.shape, call.attributes);
  for (std::int64_t i = 0; i < rows.grouped_elements(); ++i) {
    double sum = 0;
    for (std::int64_t head = 0; head < rows.repetitions(i); ++head)
      sum += number_at(call.buffers[0], call.dtype, rows.first_repeated(i) + head * rows.width);
    set_number(call.buffers[1], call.dtype, i, sum);
  }
}

CheckedSize turned(const CheckedShape& shape, DType, const KernelAttributes& attributes) {
  return shape.rows * shape.groups * attributes.as<kernels::Rope>().width;
}

constexpr KernelOperand rope_operands[] = {
    {.name = "rows", .access = Access::read_write, .elements = extent::elements, .touched = turned},
};

// A pair takes four products and two sums; the sine and cosine are the same for all heads of a
// token and count nothing.
CheckedSize rope_flops(const CheckedShape& shape, const KernelAttributes& attributes) {
  return 3 * turned(shape, DType::fp32, attributes);
}

void rope_reference(const KernelCall& call) {
  const auto rope = call.attributes.as<kernels::Rope>();
  const std::int64_t half = rope.width / 2;
  void* const rows = call.buffers[0];
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const auto position = static_cast<double>(row % call.shape.depth);
    for (std::int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rope.width);
      const double angle = position * std::pow(rope.base, exponent);
      const double cosine = std::cos(angle);
      const double sine = rope.inverse ? -std::sin(angle) : std::sin(angle);
      for (std::int64_t head = 0; head < call.shape.groups; ++head) {
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
  return {{kernels::SplitHeads::name, split_heads_operands, split_heads_flops,
           split_heads_reference, in_cuda_builds<prepare_split_heads>()},
          {kernels::MergeHeads::name, merge_heads_operands, merge_heads_flops,
           merge_heads_reference, in_cuda_builds<prepare_merge_heads>()},
          {kernels::RepeatHeads::name, repeat_heads_operands, repeat_heads_flops,
           repeat_heads_reference, in_cuda_builds<prepare_repeat_heads>()},
          {kernels::RepeatHeadsGradient::name, repeat_heads_gradient_operands,
           repeat_heads_gradient_flops, repeat_heads_gradient_reference,
           in_cuda_builds<prepare_repeat_heads_gradient>()},
          {kernels::Rope::name, rope_operands, rope_flops, rope_reference,
           in_cuda_builds<prepare_rope>()}};
}

}  // namespace stepgate
