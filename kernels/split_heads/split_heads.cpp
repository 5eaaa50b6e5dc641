// SPDX-License-Identifier: MIT
// The host side of split_heads: operands, work and the reference. Meaning and shapes:
// split_heads.h.
#include "kernels/split_heads/split_heads.h"

#include "kernels/attention/packed_heads.h"
#include "kernels/cuda_build.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand split_heads_operands[] = {
    {"rows", Access::read},
    {"heads", Access::write},
};

std::int64_t parts_to_split(const KernelScalars& scalars) {
  return static_cast<std::int64_t>(scalars[split_heads_scalar::parts]);
}

// --- work ----------------------------------------------------------------------------------------

KernelWork split_heads_work(const KernelShape& shape, DType dtype, const KernelScalars& scalars) {
  const std::int64_t bytes = parts_to_split(scalars) * shape.rows * shape.columns * bytes_of(dtype);
  return {.bytes_read = bytes, .bytes_written = bytes, .flops = 0};
}

// --- reference -----------------------------------------------------------------------------------

void split_heads_reference(const KernelCall& call) {
  const PackedHeads heads(call.shape);
  const std::int64_t parts = parts_to_split(call.scalars);
  for_each_matrix(heads, parts, [&](auto sequence, auto head, auto part, auto first) {
    const HeadNumbers numbers =
        heads.read(call.buffers[0], call.dtype, sequence, head, part, parts);
    for (const double number : numbers) set_number(call.buffers[1], call.dtype, first++, number);
  });
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel split_heads_kernel() {
  return {"split_heads", split_heads_operands, split_heads_work, split_heads_reference,
          in_cuda_builds<prepare_split_heads>()};
}

}  // namespace stepgate
