// SPDX-License-Identifier: MIT
// The host side of layer_norm with and without a residual: operands; work and references are
// norm.cpp's. Meaning and shapes: layer_norm.h.
#include "kernels/layer_norm/layer_norm.h"

#include "kernels/cuda_build.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand layer_norm_operands[] = {
    {"x", Access::read},  {"weight", Access::read},      {"bias", Access::read},
    {"y", Access::write}, {"statistics", Access::write},
};

constexpr KernelOperand residual_bias_layer_norm_operands[] = {
    {"x", Access::read},      {"branch", Access::read},      {"branch_bias", Access::read},
    {"weight", Access::read}, {"bias", Access::read},        {"sum", Access::write},
    {"y", Access::write},     {"statistics", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork layer_norm_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  return norm_work(NormKind::layer, shape, dtype);
}

KernelWork residual_bias_layer_norm_work(const KernelShape& shape, DType dtype,
                                         const KernelScalars&) {
  return residual_bias_norm_work(NormKind::layer, shape, dtype);
}

// --- references ----------------------------------------------------------------------------------

void layer_norm_reference(const KernelCall& call) {
  const auto& at = call.buffers;
  norm_reference(NormKind::layer, call, {at[0], at[1], at[2], at[3], static_cast<float*>(at[4])});
}

void residual_bias_layer_norm_reference(const KernelCall& call) {
  const auto& at = call.buffers;
  residual_reference(call, at[0], at[1], at[2], at[5]);
  norm_reference(NormKind::layer, call, {at[5], at[3], at[4], at[6], static_cast<float*>(at[7])});
}

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

Kernel layer_norm_kernel() {
  return {"layer_norm", layer_norm_operands, layer_norm_work, layer_norm_reference,
          in_cuda_builds<prepare_layer_norm>()};
}

Kernel residual_bias_layer_norm_kernel() {
  return {"residual_bias_layer_norm", residual_bias_layer_norm_operands,
          residual_bias_layer_norm_work, residual_bias_layer_norm_reference,
          in_cuda_builds<prepare_residual_bias_layer_norm>()};
}

}  // namespace stepgate
