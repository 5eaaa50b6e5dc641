// SPDX-License-Identifier: MIT
// The host side of swiglu and swiglu_gradient: operands, work and the references. Meaning and
// shapes: swiglu.h.
#include "kernels/swiglu/swiglu.h"

#include <cmath>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

CheckedSize gates_and_ups(const CheckedShape& shape, DType, const KernelAttributes&) {
  return 2 * elements_of(shape);
}

constexpr KernelOperand swiglu_operands[] = {
    {"x", Access::read, gates_and_ups},
    {"y", Access::write, extent::elements},
};

constexpr KernelOperand swiglu_gradient_operands[] = {
    {"x", Access::read, gates_and_ups},
    {"d_y", Access::read, extent::elements},
    {.name = "d_x", .access = Access::write, .elements = gates_and_ups, .may_replace = 0},
};

// --- work ----------------------------------------------------------------------------------------

// An exponential and a quotient count 1.
CheckedSize swiglu_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 4 * elements_of(shape);
}

CheckedSize swiglu_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 11 * elements_of(shape);
}

// --- references ----------------------------------------------------------------------------------

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

// Index of the gate of element i of the result.
std::int64_t gate_of(const KernelShape& shape, std::int64_t i) {
  return i + i / shape.columns * shape.columns;
}

void swiglu_reference(const KernelCall& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const std::int64_t place = gate_of(call.shape, i);
    const double gate = number_at(call.buffers[0], call.dtype, place);
    const double up = number_at(call.buffers[0], call.dtype, place + call.shape.columns);
    set_number(call.buffers[1], call.dtype, i, gate * logistic(gate) * up);
  }
}

void swiglu_gradient_reference(const KernelCall& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const std::int64_t place = gate_of(call.shape, i);
    const double gate = number_at(call.buffers[0], call.dtype, place);
    const double up = number_at(call.buffers[0], call.dtype, place + call.shape.columns);
    const double d_y = number_at(call.buffers[1], call.dtype, i);
    const double s = logistic(gate);
    set_number(call.buffers[2], call.dtype, place, d_y * up * s * (1 + gate * (1 - s)));
    set_number(call.buffers[2], call.dtype, place + call.shape.columns, d_y * gate * s);
  }
}

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

std::vector<Kernel> swiglu_kernels() {
  return {{kernels::Swiglu::name, swiglu_operands, swiglu_flops, swiglu_reference,
           in_cuda_builds<prepare_swiglu>()},
          {kernels::SwigluGradient::name, swiglu_gradient_operands, swiglu_gradient_flops,
           swiglu_gradient_reference, in_cuda_builds<prepare_swiglu_gradient>()}};
}

}  // namespace stepgate
