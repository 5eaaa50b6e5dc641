// SPDX-License-Identifier: MIT
// The host side of narrow and widen: operands, work and the references. Meaning and shapes: cast.h.
#include "kernels/cast/cast.h"

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand narrow_operands[] = {{"wide", Access::read}, {"stored", Access::write}};
constexpr KernelOperand widen_operands[] = {{"stored", Access::read}, {"wide", Access::write}};

// --- work ----------------------------------------------------------------------------------------

KernelWork narrow_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t numbers = shape.rows * shape.columns;
  return {.bytes_read = 4 * numbers, .bytes_written = numbers * bytes_of(dtype), .flops = 0};
}

KernelWork widen_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t numbers = shape.rows * shape.columns;
  return {.bytes_read = numbers * bytes_of(dtype), .bytes_written = 4 * numbers, .flops = 0};
}

// --- references ----------------------------------------------------------------------------------

void copy(const KernelCall& call, DType from, DType to) {
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    set_number(call.buffers[1], to, i, number_at(call.buffers[0], from, i));
  }
}

void narrow_reference(const KernelCall& call) {
  copy(call, DType::fp32, call.dtype);
}

void widen_reference(const KernelCall& call) {
  copy(call, call.dtype, DType::fp32);
}

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

Kernel narrow_kernel() {
  return {"narrow", narrow_operands, narrow_work, narrow_reference,
          in_cuda_builds<prepare_narrow>()};
}

Kernel widen_kernel() {
  return {"widen", widen_operands, widen_work, widen_reference, in_cuda_builds<prepare_widen>()};
}

}  // namespace stepgate
