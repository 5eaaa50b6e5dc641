// SPDX-License-Identifier: MIT
// The host side of split_heads: operands, work and the reference. Meaning and shapes:
// split_heads.h.
#include "kernels/split_heads/split_heads.h"

#include "kernels/attention/packed_heads.h"
#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

CheckedSize split_heads_elements(const CheckedShape& shape, DType,
                                 const KernelAttributes& attributes) {
  return attributes.as<kernels::SplitHeads>().parts * shape.rows * shape.columns;
}

constexpr KernelOperand split_heads_operands[] = {
    {"rows", Access::read, split_heads_elements},
    {"heads", Access::write, split_heads_elements},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize split_heads_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

// --- reference -----------------------------------------------------------------------------------

void split_heads_reference(const KernelCall& call) {
  const PackedHeads heads(call.shape);
  const std::int64_t parts = call.attributes.as<kernels::SplitHeads>().parts;
  for_each_matrix(heads, parts, [&](auto sequence, auto head, auto part, auto first) {
    const HeadNumbers numbers =
        heads.read(call.buffers[0], call.dtype, sequence, head, part, parts);
    for (const double number : numbers) set_number(call.buffers[1], call.dtype, first++, number);
  });
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> split_heads_kernels() {
  return {{kernels::SplitHeads::name, split_heads_operands, split_heads_flops,
           split_heads_reference, in_cuda_builds<prepare_split_heads>()}};
}

}  // namespace stepgate
