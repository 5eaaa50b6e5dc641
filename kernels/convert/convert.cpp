// SPDX-License-Identifier: MIT
// The host side of convert: operands, work and the references. Meaning and shapes: convert.h.
#include "kernels/convert/convert.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand widen_operands[] = {
    {"numbers", Access::read, extent::columns},
    {"wide", Access::write, extent::columns, OperandFormat::single},
};
constexpr KernelOperand narrow_operands[] = {
    {"wide", Access::read, extent::columns, OperandFormat::single},
    {"numbers", Access::write, extent::columns},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize no_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

// --- reference -----------------------------------------------------------------------------------

void copy_numbers(const KernelCall& call, DType from, DType to) {
  for (std::int64_t i = 0; i < call.shape.columns; ++i)
    set_number(call.buffers[1], to, i, number_at(call.buffers[0], from, i));
}

void widen_reference(const KernelCall& call) {
  copy_numbers(call, call.dtype, DType::fp32);
}

void narrow_reference(const KernelCall& call) {
  copy_numbers(call, DType::fp32, call.dtype);
}

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

std::vector<Kernel> convert_kernels() {
  return {{kernels::Widen::name, widen_operands, no_flops, widen_reference,
           in_cuda_builds<prepare_widen>()},
          {kernels::Narrow::name, narrow_operands, no_flops, narrow_reference,
           in_cuda_builds<prepare_narrow>()}};
}

}  // namespace stepgate
