// SPDX-License-Identifier: MIT
// The host side of spin: operands, work and the reference. Meaning and shapes: spin.h.
#include "kernels/spin/spin.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand spin_operands[] = {
    {"word", Access::read_write, extent::one, OperandFormat::word},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize spin_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

// --- reference -----------------------------------------------------------------------------------

void spin_reference(const KernelCall& call) {
  *static_cast<std::uint32_t*>(call.buffers[0]) += 1;
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> spin_kernels() {
  return {{.name = kernels::Spin::name,
           .operands = spin_operands,
           .flops = spin_flops,
           .reference = spin_reference,
           .prepare = in_cuda_builds<prepare_spin>(),
           .delay_microseconds = [](const KernelAttributes& attributes) {
             return attributes.as<kernels::Spin>().microseconds;
           }}};
}

}  // namespace stepgate
