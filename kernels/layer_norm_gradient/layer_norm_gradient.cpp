// SPDX-License-Identifier: MIT
// The host side of layer_norm_gradient: operands; work and reference are norm.cpp's. Meaning and
// shapes: layer_norm_gradient.h.
#include "kernels/layer_norm_gradient/layer_norm_gradient.h"

#include "kernels/cuda_build.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand layer_norm_gradient_operands[] = {
    {"d_y", Access::read},
    {"x", Access::read},
    {"weight", Access::read},
    {"statistics", Access::read},
    {"d_x", Access::read_write, norm_gradient_scalar::accumulate},
    {"partials", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork layer_norm_gradient_work(const KernelShape& shape, DType dtype,
                                    const KernelScalars& scalars) {
  return norm_gradient_work(NormKind::layer, shape, dtype, scalars);
}

// --- reference -----------------------------------------------------------------------------------

void layer_norm_gradient_reference(const KernelCall& call) {
  norm_gradient_reference(NormKind::layer, call);
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel layer_norm_gradient_kernel() {
  return {"layer_norm_gradient", layer_norm_gradient_operands, layer_norm_gradient_work,
          layer_norm_gradient_reference, in_cuda_builds<prepare_layer_norm_gradient>()};
}

}  // namespace stepgate
