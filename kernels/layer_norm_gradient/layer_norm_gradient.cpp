// SPDX-License-Identifier: MIT
// The host side of layer_norm_gradient: operands; work and reference are norm.cpp's. Meaning and
// shapes: layer_norm_gradient.h.
#include "kernels/layer_norm_gradient/layer_norm_gradient.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

bool accumulates_d_x_of_layer(const KernelAttributes& attributes) {
  return attributes.as<kernels::LayerNormGradient>().accumulate;
}

CheckedSize layer_norm_partials(const CheckedShape& shape, DType,
                                const KernelAttributes& attributes) {
  return norm_partial_elements(NormKind::layer, shape, attributes.as<kernels::LayerNormGradient>());
}

constexpr KernelOperand layer_norm_gradient_operands[] = {
    {"d_y", Access::read, extent::elements},
    {"x", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"statistics", Access::read, extent::two_a_row, OperandFormat::single},
    {.name = "d_x",
     .access = Access::read_write,
     .elements = extent::elements,
     .accumulates = accumulates_d_x_of_layer},
    {"partials", Access::write, layer_norm_partials, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize layer_norm_gradient_flops(const CheckedShape& shape,
                                      const KernelAttributes& attributes) {
  return norm_gradient_operations(NormKind::layer, attributes.as<kernels::LayerNormGradient>()) *
         elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

void layer_norm_gradient_reference(const KernelCall& call) {
  norm_gradient_reference(NormKind::layer, call, call.attributes.as<kernels::LayerNormGradient>());
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> layer_norm_gradient_kernels() {
  return {{kernels::LayerNormGradient::name, layer_norm_gradient_operands,
           layer_norm_gradient_flops, layer_norm_gradient_reference,
           in_cuda_builds<prepare_layer_norm_gradient>()}};
}

}  // namespace stepgate
