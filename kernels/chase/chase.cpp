// SPDX-License-Identifier: MIT
// The host side of chase: operands, work and the reference. Meaning and shapes: chase.h.
#include "kernels/chase/chase.h"

#include <algorithm>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

CheckedSize chain_words(const CheckedShape& shape, DType, const KernelAttributes&) {
  return shape.columns * chase_line_words;
}

// A word of each line that is followed.
CheckedSize followed_words(const CheckedShape& shape, DType, const KernelAttributes& attributes) {
  return std::min<std::int64_t>(shape.columns, attributes.as<kernels::Chase>().accesses);
}

constexpr KernelOperand chase_operands[] = {
    {.name = "chain",
     .access = Access::read,
     .elements = chain_words,
     .format = OperandFormat::word,
     .touched = followed_words},
    {"position", Access::read_write, extent::one, OperandFormat::word},
    {"fraction", Access::write, extent::one, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize chase_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

DependentLoads chase_loads(const KernelShape& shape, const KernelAttributes& attributes) {
  return {.count = attributes.as<kernels::Chase>().accesses,
          .footprint_bytes = shape.columns * chase_line_bytes};
}

// --- reference -----------------------------------------------------------------------------------

void chase_reference(const KernelCall& call) {
  const auto* chain = static_cast<const std::uint32_t*>(call.buffers[0]);
  std::uint32_t line = *static_cast<std::uint32_t*>(call.buffers[1]);
  const std::int64_t accesses = call.attributes.as<kernels::Chase>().accesses;
  for (std::int64_t access = 0; access < accesses; ++access) line = chain[line * chase_line_words];
  *static_cast<std::uint32_t*>(call.buffers[1]) = line;
  *static_cast<float*>(call.buffers[2]) =
      static_cast<float>(static_cast<double>(line) / static_cast<double>(call.shape.columns));
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> chase_kernels() {
  return {{.name = kernels::Chase::name,
           .operands = chase_operands,
           .flops = chase_flops,
           .reference = chase_reference,
           .prepare = in_cuda_builds<prepare_chase>(),
           .dependent_loads = chase_loads}};
}

}  // namespace stepgate
