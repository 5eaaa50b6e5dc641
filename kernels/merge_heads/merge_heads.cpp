// SPDX-License-Identifier: MIT
// The host side of merge_heads: operands, work and the reference. Meaning and shapes:
// merge_heads.h.
#include "kernels/merge_heads/merge_heads.h"

#include "kernels/attention/packed_heads.h"
#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

CheckedSize merge_heads_elements(const CheckedShape& shape, DType,
                                 const KernelAttributes& attributes) {
  return attributes.as<kernels::MergeHeads>().parts * shape.rows * shape.columns;
}

constexpr KernelOperand merge_heads_operands[] = {
    {"heads", Access::read, merge_heads_elements},
    {"rows", Access::write, merge_heads_elements},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize merge_heads_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

// --- reference -----------------------------------------------------------------------------------

void merge_heads_reference(const KernelCall& call) {
  const PackedHeads heads(call.shape);
  const std::int64_t parts = call.attributes.as<kernels::MergeHeads>().parts;
  for_each_matrix(heads, parts, [&](auto sequence, auto head, auto part, auto first) {
    HeadNumbers numbers(static_cast<std::size_t>(heads.tokens * heads.width));
    for (double& number : numbers) number = number_at(call.buffers[0], call.dtype, first++);
    heads.write(numbers, call.buffers[1], call.dtype, sequence, head, part, parts);
  });
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> merge_heads_kernels() {
  return {{kernels::MergeHeads::name, merge_heads_operands, merge_heads_flops,
           merge_heads_reference, in_cuda_builds<prepare_merge_heads>()}};
}

}  // namespace stepgate
