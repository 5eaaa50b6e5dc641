// SPDX-License-Identifier: MIT
// The host side of gelu, gelu_gradient and bias_gelu: operands, work and the references. Meaning
// and shapes: gelu.h.
#include "kernels/gelu/gelu.h"

#include <cmath>
#include <tuple>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand gelu_operands[] = {
    {"x", Access::read, extent::elements},
    {.name = "y", .access = Access::write, .elements = extent::elements, .may_replace = 0},
};

constexpr KernelOperand gradient_operands[] = {
    {"x", Access::read, extent::elements},
    {"d_y", Access::read, extent::elements},
    {.name = "d_x", .access = Access::write, .elements = extent::elements, .may_replace = 1},
};

constexpr KernelOperand bias_operands[] = {
    {"x", Access::read, extent::elements},
    {"bias", Access::read, extent::columns},
    {.name = "pre", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"y", Access::write, extent::elements},
};

// --- work ----------------------------------------------------------------------------------------

// An exponential and a quotient count 1.
constexpr std::int64_t gelu_operations = 7;

CheckedSize gelu_flops(const CheckedShape& shape, const KernelAttributes&) {
  return gelu_operations * elements_of(shape);
}

CheckedSize gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 15 * elements_of(shape);
}

CheckedSize bias_flops(const CheckedShape& shape, const KernelAttributes&) {
  return (1 + gelu_operations) * elements_of(shape);
}

// --- references ----------------------------------------------------------------------------------

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(gelu_slope * (x + gelu_cubic * x * x * x)));
}

double gelu_slope_at(double x) {
  const double tangent = std::tanh(gelu_slope * (x + gelu_cubic * x * x * x));
  const double inner = gelu_slope * (1 + 3 * gelu_cubic * x * x);
  return 0.5 * (1 + tangent) + 0.5 * x * (1 - tangent * tangent) * inner;
}

void gelu_reference(const KernelCall& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    set_number(call.buffers[1], call.dtype, i, gelu(number_at(call.buffers[0], call.dtype, i)));
  }
}

void gradient_reference(const KernelCall& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    set_number(call.buffers[2], call.dtype, i,
               number_at(call.buffers[1], call.dtype, i) *
                   gelu_slope_at(number_at(call.buffers[0], call.dtype, i)));
  }
}

void bias_reference(const KernelCall& call) {
  const auto [x, bias, pre] = std::tuple{call.buffers[0], call.buffers[1], call.buffers[2]};
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    set_number(pre, call.dtype, i,
               number_at(x, call.dtype, i) + number_at(bias, call.dtype, i % call.shape.columns));
    set_number(call.buffers[3], call.dtype, i, gelu(number_at(pre, call.dtype, i)));
  }
}

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

std::vector<Kernel> gelu_kernels() {
  return {{kernels::Gelu::name, gelu_operands, gelu_flops, gelu_reference,
           in_cuda_builds<prepare_gelu>()},
          {kernels::GeluGradient::name, gradient_operands, gradient_flops, gradient_reference,
           in_cuda_builds<prepare_gelu_gradient>()},
          {kernels::BiasGelu::name, bias_operands, bias_flops, bias_reference,
           in_cuda_builds<prepare_bias_gelu>()}};
}

}  // namespace stepgate
