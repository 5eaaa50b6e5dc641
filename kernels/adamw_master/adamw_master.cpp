// SPDX-License-Identifier: MIT
// The host side of adamw_master: operands, work and the reference. Meaning and shapes:
// adamw_master.h.
#include "kernels/adamw_master/adamw_master.h"

#include "kernels/adamw/adamw_update.h"
#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand adamw_master_operands[] = {
    {.name = "weights",
     .access = Access::read_write,
     .elements = extent::elements,
     .keeps_rest = true},
    {"gradients", Access::read, extent::elements},
    {"master", Access::read_write, extent::elements, OperandFormat::single},
    {"m", Access::read_write, extent::elements, OperandFormat::single},
    {"v", Access::read_write, extent::elements, OperandFormat::single},
    {"control", Access::read, extent::control, OperandFormat::control},
};

// --- work ----------------------------------------------------------------------------------------

// Of a launch that is not skipped: adamw's 16 and the factor.
std::int64_t adamw_master_flops(const KernelShape& shape, const KernelAttributes&) {
  return 17 * elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

void adamw_master_reference(const KernelCall& call) {
  const auto* control = static_cast<const float*>(call.buffers[5]);
  const double factor = control[update_control::factor];
  if (factor == 0) return;
  auto* master = static_cast<float*>(call.buffers[2]);
  auto* m = static_cast<float*>(call.buffers[3]);
  auto* v = static_cast<float*>(call.buffers[4]);
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const double gradient = factor * number_at(call.buffers[1], call.dtype, i);
    const AdamwNumbers after = adamw_step({master[i], m[i], v[i]}, gradient,
                                          control[update_control::updates], call.attributes);
    master[i] = static_cast<float>(after.weight);
    m[i] = static_cast<float>(after.m);
    v[i] = static_cast<float>(after.v);
    set_number(call.buffers[0], call.dtype, i, master[i]);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel adamw_master_kernel() {
  return {kernels::AdamwMaster::name, adamw_master_operands, adamw_master_flops,
          adamw_master_reference, in_cuda_builds<prepare_adamw_master>()};
}

}  // namespace stepgate
