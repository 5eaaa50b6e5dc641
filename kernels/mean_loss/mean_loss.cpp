// SPDX-License-Identifier: MIT
// The host side of mean_loss: operands, work and the reference. Meaning and shapes: mean_loss.h.
#include "kernels/mean_loss/mean_loss.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand mean_loss_operands[] = {
    {"sum", Access::read_write, extent::one, OperandFormat::single},
    {"mean", Access::write, extent::one, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize mean_loss_flops(const CheckedShape&, const KernelAttributes&) {
  return 1;
}

// --- reference -----------------------------------------------------------------------------------

void mean_loss_reference(const KernelCall& call) {
  auto* sum = static_cast<float*>(call.buffers[0]);
  *static_cast<float*>(call.buffers[1]) =
      static_cast<float>(*sum / static_cast<double>(call.attributes.as<kernels::MeanLoss>().count));
  *sum = 0;
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> mean_loss_kernels() {
  return {{kernels::MeanLoss::name, mean_loss_operands, mean_loss_flops, mean_loss_reference,
           in_cuda_builds<prepare_mean_loss>()}};
}

}  // namespace stepgate
