// SPDX-License-Identifier: MIT
// The host side of layer_norm with and without a residual: operands; work and references are
// norm.cpp's. Meaning and shapes: layer_norm.h.
#include "kernels/layer_norm/layer_norm.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand layer_norm_operands[] = {
    {"x", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"bias", Access::read, extent::columns},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::two_a_row, OperandFormat::single},
};

constexpr KernelOperand residual_layer_norm_operands[] = {
    {"x", Access::read, extent::elements},
    {"branch", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"bias", Access::read, extent::columns},
    {.name = "sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::two_a_row, OperandFormat::single},
};

constexpr KernelOperand residual_bias_layer_norm_operands[] = {
    {"x", Access::read, extent::elements},
    {"branch", Access::read, extent::elements},
    {"branch_bias", Access::read, extent::columns},
    {"weight", Access::read, extent::columns},
    {"bias", Access::read, extent::columns},
    {.name = "sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::two_a_row, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize layer_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return norm_operations(NormKind::layer) * elements_of(shape);
}

CheckedSize residual_layer_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return (1 + norm_operations(NormKind::layer)) * elements_of(shape);
}

CheckedSize residual_bias_layer_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return (2 + norm_operations(NormKind::layer)) * elements_of(shape);
}

// --- references ----------------------------------------------------------------------------------

void layer_norm_reference(const KernelCall& call) {
  const auto& at = call.buffers;
  norm_reference(NormKind::layer, call, call.attributes.as<kernels::LayerNorm>().epsilon,
                 {at[0], at[1], at[2], at[3], static_cast<float*>(at[4])});
}

void residual_layer_norm_reference(const KernelCall& call) {
  const auto& at = call.buffers;
  residual_reference(call, at[0], at[1], nullptr, at[4]);
  norm_reference(NormKind::layer, call, call.attributes.as<kernels::ResidualLayerNorm>().epsilon,
                 {at[4], at[2], at[3], at[5], static_cast<float*>(at[6])});
}

void residual_bias_layer_norm_reference(const KernelCall& call) {
  const auto& at = call.buffers;
  residual_reference(call, at[0], at[1], at[2], at[5]);
  norm_reference(NormKind::layer, call,
                 call.attributes.as<kernels::ResidualBiasLayerNorm>().epsilon,
                 {at[5], at[3], at[4], at[6], static_cast<float*>(at[7])});
}

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

std::vector<Kernel> layer_norm_kernels() {
  return {
      {kernels::LayerNorm::name, layer_norm_operands, layer_norm_flops, layer_norm_reference,
       in_cuda_builds<prepare_layer_norm>()},
      {kernels::ResidualLayerNorm::name, residual_layer_norm_operands, residual_layer_norm_flops,
       residual_layer_norm_reference, in_cuda_builds<prepare_residual_layer_norm>()},
      {kernels::ResidualBiasLayerNorm::name, residual_bias_layer_norm_operands,
       residual_bias_layer_norm_flops, residual_bias_layer_norm_reference,
       in_cuda_builds<prepare_residual_bias_layer_norm>()}};
}

}  // namespace stepgate
