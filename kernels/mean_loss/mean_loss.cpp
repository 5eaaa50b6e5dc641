// SPDX-License-Identifier: MIT
// The host side of mean_loss: operands, work and the reference. Meaning and shapes: mean_loss.h.
#include "kernels/mean_loss/mean_loss.h"

#include "kernels/cuda_build.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand mean_loss_operands[] = {
    {"sum", Access::read_write},
    {"mean", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork mean_loss_work(const KernelShape&, DType, const KernelScalars&) {
  return {.bytes_read = 4, .bytes_written = 8, .flops = 1};
}

// --- reference -----------------------------------------------------------------------------------

void mean_loss_reference(const KernelCall& call) {
  auto* sum = static_cast<float*>(call.buffers[0]);
  *static_cast<float*>(call.buffers[1]) =
      static_cast<float>(*sum / call.scalars[mean_loss_scalar::count]);
  *sum = 0;
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel mean_loss_kernel() {
  return {"mean_loss", mean_loss_operands, mean_loss_work, mean_loss_reference,
          in_cuda_builds<prepare_mean_loss>()};
}

}  // namespace stepgate
