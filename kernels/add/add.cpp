// SPDX-License-Identifier: MIT
// The host side of add: operands, work and the reference. Meaning and shapes: add.h.
#include "kernels/add/add.h"

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand add_operands[] = {
    {"x", Access::read},
    {"branch", Access::read},
    {"sum", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork add_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t elements = shape.rows * shape.columns;
  return {.bytes_read = 2 * elements * bytes_of(dtype),
          .bytes_written = elements * bytes_of(dtype),
          .flops = elements};
}

// --- reference -----------------------------------------------------------------------------------

void add_reference(const KernelCall& call) {
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    set_number(
        call.buffers[2], call.dtype, i,
        number_at(call.buffers[0], call.dtype, i) + number_at(call.buffers[1], call.dtype, i));
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel add_kernel() {
  return {"add", add_operands, add_work, add_reference, in_cuda_builds<prepare_add>()};
}

}  // namespace stepgate
