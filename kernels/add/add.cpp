// SPDX-License-Identifier: MIT
// The host side of add: operands, work and the reference. Meaning and shapes: add.h.
#include "kernels/add/add.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand add_operands[] = {
    {"x", Access::read, extent::elements},
    {"branch", Access::read, extent::elements},
    {.name = "sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize add_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

void add_reference(const KernelCall& call) {
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    set_number(
        call.buffers[2], call.dtype, i,
        number_at(call.buffers[0], call.dtype, i) + number_at(call.buffers[1], call.dtype, i));
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> add_kernels() {
  return {
      {kernels::Add::name, add_operands, add_flops, add_reference, in_cuda_builds<prepare_add>()}};
}

}  // namespace stepgate
