// SPDX-License-Identifier: MIT
// The host side of spin: operands, work and the reference. Meaning and shapes: spin.h.
#include "kernels/spin/spin.h"

#include "kernels/cuda_build.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand spin_operands[] = {
    {"word", Access::read_write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork spin_work(const KernelShape&, DType, const KernelScalars&) {
  return {.bytes_read = 4, .bytes_written = 4, .flops = 0};
}

// --- reference -----------------------------------------------------------------------------------

void spin_reference(const KernelCall& call) {
  *static_cast<std::uint32_t*>(call.buffers[0]) += 1;
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel spin_kernel() {
  return {.name = "spin",
          .operands = spin_operands,
          .work = spin_work,
          .reference = spin_reference,
          .prepare = in_cuda_builds<prepare_spin>(),
          .delay_microseconds = [](const KernelScalars& scalars) { return scalars[0]; }};
}

}  // namespace stepgate
