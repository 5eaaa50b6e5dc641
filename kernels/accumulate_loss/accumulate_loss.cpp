// SPDX-License-Identifier: MIT
// The host side of accumulate_loss: operands, work and the reference. Meaning and shapes:
// accumulate_loss.h.
#include "kernels/accumulate_loss/accumulate_loss.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand accumulate_loss_operands[] = {
    {"loss", Access::read, extent::one, OperandFormat::single},
    {"sum", Access::read_write, extent::one, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize accumulate_loss_flops(const CheckedShape&, const KernelAttributes&) {
  return 1;
}

// --- reference -----------------------------------------------------------------------------------

void accumulate_loss_reference(const KernelCall& call) {
  *static_cast<float*>(call.buffers[1]) += *static_cast<const float*>(call.buffers[0]);
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> accumulate_loss_kernels() {
  return {{kernels::AccumulateLoss::name, accumulate_loss_operands, accumulate_loss_flops,
           accumulate_loss_reference, in_cuda_builds<prepare_accumulate_loss>()}};
}

}  // namespace stepgate
