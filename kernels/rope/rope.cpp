// SPDX-License-Identifier: MIT
// The host side of rope: its operand, work and the reference. Meaning and shapes: rope.h.
#include "kernels/rope/rope.h"

#include <cmath>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operand -------------------------------------------------------------------------------------

CheckedSize turned(const CheckedShape& shape, DType, const KernelAttributes& attributes) {
  return shape.rows * shape.groups * attributes.as<kernels::Rope>().width;
}

constexpr KernelOperand rope_operands[] = {
    {.name = "rows", .access = Access::read_write, .elements = extent::elements, .touched = turned},
};

// --- work ----------------------------------------------------------------------------------------

// A pair takes four products and two sums; the sine and cosine are the same for all heads of a
// token and count nothing.
CheckedSize rope_flops(const CheckedShape& shape, const KernelAttributes& attributes) {
  return 3 * turned(shape, DType::fp32, attributes);
}

// --- reference -----------------------------------------------------------------------------------

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

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> rope_kernels() {
  return {{kernels::Rope::name, rope_operands, rope_flops, rope_reference,
           in_cuda_builds<prepare_rope>()}};
}

}  // namespace stepgate
