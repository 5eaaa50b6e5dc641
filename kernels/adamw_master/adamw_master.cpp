// SPDX-License-Identifier: MIT
// The host side of adamw_master: operands, work and the reference. Meaning and shapes:
// adamw_master.h.
#include "kernels/adamw_master/adamw_master.h"

#include "kernels/adamw/adamw_update.h"
#include "kernels/cuda_build.h"
#include "kernels/number_format.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand adamw_master_operands[] = {
    {"weights", Access::read_write}, {"gradients", Access::read}, {"master", Access::read_write},
    {"m", Access::read_write},       {"v", Access::read_write},   {"control", Access::read},
};

// --- work ----------------------------------------------------------------------------------------

// Of a launch that is not skipped.
KernelWork adamw_master_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t parameters = shape.rows * shape.columns;
  return {.bytes_read = parameters * (bytes_of(dtype) + 12) + update_control::bytes,
          .bytes_written = parameters * (bytes_of(dtype) + 12),
          // adamw's 16 and the factor
          .flops = 17 * parameters};
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
                                          control[update_control::updates], call.scalars);
    master[i] = static_cast<float>(after.weight);
    m[i] = static_cast<float>(after.m);
    v[i] = static_cast<float>(after.v);
    set_number(call.buffers[0], call.dtype, i, master[i]);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel adamw_master_kernel() {
  return {"adamw_master", adamw_master_operands, adamw_master_work, adamw_master_reference,
          in_cuda_builds<prepare_adamw_master>()};
}

}  // namespace stepgate
