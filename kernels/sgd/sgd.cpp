// SPDX-License-Identifier: MIT
// The host side of sgd: operands, work and the reference. Meaning and shapes: sgd.h.
#include "kernels/sgd/sgd.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand sgd_operands[] = {
    {"weights", Access::read_write, extent::elements},
    {"gradients", Access::read, extent::elements},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize sgd_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 2 * elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

void sgd_reference(const KernelCall& call) {
  const double learning_rate = call.attributes.as<kernels::Sgd>().learning_rate;
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    set_number(call.buffers[0], call.dtype, i,
               number_at(call.buffers[0], call.dtype, i) -
                   learning_rate * number_at(call.buffers[1], call.dtype, i));
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> sgd_kernels() {
  return {
      {kernels::Sgd::name, sgd_operands, sgd_flops, sgd_reference, in_cuda_builds<prepare_sgd>()}};
}

}  // namespace stepgate
