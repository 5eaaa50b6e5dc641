// SPDX-License-Identifier: MIT
// The host side of accumulate_loss: operands, work and the reference. Meaning and shapes:
// accumulate_loss.h.
#include "kernels/accumulate_loss/accumulate_loss.h"

#include "kernels/cuda_build.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand accumulate_loss_operands[] = {
    {"loss", Access::read},
    {"sum", Access::read_write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork accumulate_loss_work(const KernelShape&, DType, const KernelScalars&) {
  return {.bytes_read = 8, .bytes_written = 4, .flops = 1};
}

// --- reference -----------------------------------------------------------------------------------

void accumulate_loss_reference(const KernelCall& call) {
  *static_cast<float*>(call.buffers[1]) += *static_cast<const float*>(call.buffers[0]);
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel accumulate_loss_kernel() {
  return {"accumulate_loss", accumulate_loss_operands, accumulate_loss_work,
          accumulate_loss_reference, in_cuda_builds<prepare_accumulate_loss>()};
}

}  // namespace stepgate
