// SPDX-License-Identifier: MIT
// The host side of merge_heads: operands, work and the reference. Meaning and shapes:
// merge_heads.h.
#include "kernels/merge_heads/merge_heads.h"

#include "kernels/attention/packed_heads.h"
#include "kernels/cuda_build.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand merge_heads_operands[] = {
    {"heads", Access::read},
    {"rows", Access::write},
};

std::int64_t parts_to_merge(const KernelScalars& scalars) {
  return static_cast<std::int64_t>(scalars[merge_heads_scalar::parts]);
}

// --- work ----------------------------------------------------------------------------------------

KernelWork merge_heads_work(const KernelShape& shape, DType dtype, const KernelScalars& scalars) {
  const std::int64_t bytes = parts_to_merge(scalars) * shape.rows * shape.columns * bytes_of(dtype);
  return {.bytes_read = bytes, .bytes_written = bytes, .flops = 0};
}

// --- reference -----------------------------------------------------------------------------------

void merge_heads_reference(const KernelCall& call) {
  const PackedHeads heads(call.shape);
  const std::int64_t parts = parts_to_merge(call.scalars);
  for_each_matrix(heads, parts, [&](auto sequence, auto head, auto part, auto first) {
    HeadNumbers numbers(static_cast<std::size_t>(heads.tokens * heads.width));
    for (double& number : numbers) number = number_at(call.buffers[0], call.dtype, first++);
    heads.write(numbers, call.buffers[1], call.dtype, sequence, head, part, parts);
  });
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel merge_heads_kernel() {
  return {"merge_heads", merge_heads_operands, merge_heads_work, merge_heads_reference,
          in_cuda_builds<prepare_merge_heads>()};
}

}  // namespace stepgate
