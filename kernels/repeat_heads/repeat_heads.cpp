// SPDX-License-Identifier: MIT
// The host side of repeat_heads and repeat_heads_gradient: operands, work and the references.
// Meaning and shapes: repeat_heads.h.
#include "kernels/repeat_heads/repeat_heads.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"
#include "kernels/repeat_heads/grouped_rows.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

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

// --- work ----------------------------------------------------------------------------------------

CheckedSize repeat_heads_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

// All of the H heads of keys and values but the first of each group are added.
CheckedSize repeat_heads_gradient_flops(const CheckedShape& shape,
                                        const KernelAttributes& attributes) {
  const std::int64_t kv_heads = attributes.as<kernels::RepeatHeads>().kv_heads;
  return 2 * shape.rows * (shape.columns / shape.groups) * (shape.groups - kv_heads);
}

// --- references ----------------------------------------------------------------------------------

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

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

std::vector<Kernel> repeat_heads_kernels() {
  return {{kernels::RepeatHeads::name, repeat_heads_operands, repeat_heads_flops,
           repeat_heads_reference, in_cuda_builds<prepare_repeat_heads>()},
          {kernels::RepeatHeadsGradient::name, repeat_heads_gradient_operands,
           repeat_heads_gradient_flops, repeat_heads_gradient_reference,
           in_cuda_builds<prepare_repeat_heads_gradient>()}};
}

}  // namespace stepgate
