// SPDX-License-Identifier: MIT
// The host side of adamw_clipped: operands, work and the reference. Meaning and shapes:
// adamw_clipped.h.
#include "kernels/adamw_clipped/adamw_clipped.h"

#include "kernels/adamw/adamw_update.h"
#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand adamw_clipped_operands[] = {
    {"weights", Access::read_write, extent::elements},
    {"gradients", Access::read, extent::elements},
    {"m", Access::read_write, extent::elements, OperandFormat::single},
    {"v", Access::read_write, extent::elements, OperandFormat::single},
    {"control", Access::read, extent::control, OperandFormat::control},
};

// --- work ----------------------------------------------------------------------------------------

// Of a launch that is not skipped: adamw's 16 and the factor.
std::int64_t adamw_clipped_flops(const KernelShape& shape, const KernelAttributes&) {
  return 17 * elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

void adamw_clipped_reference(const KernelCall& call) {
  const auto* control = static_cast<const float*>(call.buffers[4]);
  const double factor = control[update_control::factor];
  if (factor == 0) return;
  auto* m = static_cast<float*>(call.buffers[2]);
  auto* v = static_cast<float*>(call.buffers[3]);
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const double gradient = factor * number_at(call.buffers[1], call.dtype, i);
    const AdamwNumbers before{number_at(call.buffers[0], call.dtype, i), m[i], v[i]};
    const AdamwNumbers after =
        adamw_step(before, gradient, control[update_control::updates], call.attributes);
    set_number(call.buffers[0], call.dtype, i, after.weight);
    m[i] = static_cast<float>(after.m);
    v[i] = static_cast<float>(after.v);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel adamw_clipped_kernel() {
  return {kernels::AdamwClipped::name, adamw_clipped_operands, adamw_clipped_flops,
          adamw_clipped_reference, in_cuda_builds<prepare_adamw_clipped>()};
}

}  // namespace stepgate
