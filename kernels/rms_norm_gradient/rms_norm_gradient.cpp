// SPDX-License-Identifier: MIT
// The host side of rms_norm_gradient: operands; work and reference are norm.cpp's. Meaning and
// shapes: rms_norm_gradient.h.
#include "kernels/rms_norm_gradient/rms_norm_gradient.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

bool accumulates_d_x_of_rms(const KernelAttributes& attributes) {
  return attributes.as<kernels::RmsNormGradient>().accumulate;
}

CheckedSize rms_norm_partials(const CheckedShape& shape, DType,
                              const KernelAttributes& attributes) {
  return norm_partial_elements(NormKind::rms, shape, attributes.as<kernels::RmsNormGradient>());
}

constexpr KernelOperand rms_norm_gradient_operands[] = {
    {"d_y", Access::read, extent::elements},
    {"x", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"statistics", Access::read, extent::rows, OperandFormat::single},
    {.name = "d_x",
     .access = Access::read_write,
     .elements = extent::elements,
     .accumulates = accumulates_d_x_of_rms},
    {"partials", Access::write, rms_norm_partials, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize rms_norm_gradient_flops(const CheckedShape& shape, const KernelAttributes& attributes) {
  return norm_gradient_operations(NormKind::rms, attributes.as<kernels::RmsNormGradient>()) *
         elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

void rms_norm_gradient_reference(const KernelCall& call) {
  norm_gradient_reference(NormKind::rms, call, call.attributes.as<kernels::RmsNormGradient>());
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> rms_norm_gradient_kernels() {
  return {{kernels::RmsNormGradient::name, rms_norm_gradient_operands, rms_norm_gradient_flops,
           rms_norm_gradient_reference, in_cuda_builds<prepare_rms_norm_gradient>()}};
}

}  // namespace stepgate
