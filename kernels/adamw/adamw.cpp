// SPDX-License-Identifier: MIT
// The host side of adamw: operands, work and the reference. Meaning and shapes: adamw.h.
#include "kernels/adamw/adamw.h"

#include "kernels/adamw/adamw_update.h"
#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand adamw_operands[] = {
    {"weights", Access::read_write, extent::elements},
    {"gradients", Access::read, extent::elements},
    {"m", Access::read_write, extent::elements, OperandFormat::single},
    {"v", Access::read_write, extent::elements, OperandFormat::single},
    {"counter", Access::read, extent::one, OperandFormat::count},
};

// --- work ----------------------------------------------------------------------------------------

// m 3, v 4, corrections 2, root, sum, quotient, decay 2, step 2
std::int64_t adamw_flops(const KernelShape& shape, const KernelAttributes&) {
  return 16 * elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

void adamw_reference(const KernelCall& call) {
  const auto updates = static_cast<double>(*static_cast<const std::uint64_t*>(call.buffers[4]));
  auto* m = static_cast<float*>(call.buffers[2]);
  auto* v = static_cast<float*>(call.buffers[3]);
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const AdamwNumbers before{number_at(call.buffers[0], call.dtype, i), m[i], v[i]};
    const double gradient = number_at(call.buffers[1], call.dtype, i);
    const AdamwNumbers after = adamw_step(before, gradient, updates, call.attributes);
    set_number(call.buffers[0], call.dtype, i, after.weight);
    m[i] = static_cast<float>(after.m);
    v[i] = static_cast<float>(after.v);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel adamw_kernel() {
  return {kernels::Adamw::name, adamw_operands, adamw_flops, adamw_reference,
          in_cuda_builds<prepare_adamw>()};
}

}  // namespace stepgate
