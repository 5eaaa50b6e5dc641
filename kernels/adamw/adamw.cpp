// SPDX-License-Identifier: MIT
// The host side of adamw: operands, work and the reference. Meaning and shapes: adamw.h.
#include "kernels/adamw/adamw.h"

#include "kernels/adamw/adamw_update.h"
#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand adamw_operands[] = {
    {"weights", Access::read_write}, {"gradients", Access::read}, {"m", Access::read_write},
    {"v", Access::read_write},       {"counter", Access::read},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork adamw_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t parameters = shape.rows * shape.columns;
  return {.bytes_read = parameters * (2 * bytes_of(dtype) + 8) + 8,
          .bytes_written = parameters * (bytes_of(dtype) + 8),
          // m 3, v 4, corrections 2, root, sum, quotient, decay 2, step 2
          .flops = 16 * parameters};
}

// --- reference -----------------------------------------------------------------------------------

void adamw_reference(const KernelCall& call) {
  const auto updates = static_cast<double>(*static_cast<const std::uint64_t*>(call.buffers[4]));
  auto* m = static_cast<float*>(call.buffers[2]);
  auto* v = static_cast<float*>(call.buffers[3]);
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const AdamwNumbers before{number_at(call.buffers[0], call.dtype, i), m[i], v[i]};
    const double gradient = number_at(call.buffers[1], call.dtype, i);
    const AdamwNumbers after = adamw_step(before, gradient, updates, call.scalars);
    set_number(call.buffers[0], call.dtype, i, after.weight);
    m[i] = static_cast<float>(after.m);
    v[i] = static_cast<float>(after.v);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel adamw_kernel() {
  return {"adamw", adamw_operands, adamw_work, adamw_reference, in_cuda_builds<prepare_adamw>()};
}

}  // namespace stepgate
