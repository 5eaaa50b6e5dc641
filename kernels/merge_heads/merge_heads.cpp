// SPDX-License-Identifier: MIT
// The host side of merge_heads: operands, work and the reference. Meaning and shapes:
// merge_heads.h.
#include "kernels/merge_heads/merge_heads.h"

#include "kernels/attention/packed_heads.h"
#include "kernels/cuda_build.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand operands[] = {
    {"heads", Access::read},
    {"rows", Access::write},
};

std::int64_t part_count(const KernelScalars& scalars) {
  return static_cast<std::int64_t>(scalars[merge_heads_scalar::parts]);
}

// --- work ----------------------------------------------------------------------------------------

KernelWork work(const KernelShape& shape, DType dtype, const KernelScalars& scalars) {
  const std::int64_t bytes = part_count(scalars) * shape.rows * shape.columns * bytes_of(dtype);
  return {.bytes_read = bytes, .bytes_written = bytes, .flops = 0};
}

// --- reference -----------------------------------------------------------------------------------

void reference(const KernelCall& call) {
  const PackedHeads heads(call.shape);
  const std::int64_t parts = part_count(call.scalars);
  std::int64_t matrix = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t s = 0; s < heads.sequences; ++s) {
      for (std::int64_t h = 0; h < heads.heads; ++h, ++matrix) {
        HeadNumbers numbers;
        for (std::int64_t i = 0; i < heads.tokens * heads.width; ++i) {
          numbers.push_back(
              number_at(call.buffers[0], call.dtype, matrix * heads.tokens * heads.width + i));
        }
        heads.write(numbers, call.buffers[1], call.dtype, s, h, part, parts);
      }
    }
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel merge_heads_kernel() {
  return {"merge_heads", operands, work, reference, in_cuda_builds<prepare_merge_heads>()};
}

}  // namespace stepgate
