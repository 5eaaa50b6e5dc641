// SPDX-License-Identifier: MIT
// The host side of rms_norm_gradient: operands; work and reference are norm.cpp's. Meaning and
// shapes: rms_norm_gradient.h.
#include "kernels/rms_norm_gradient/rms_norm_gradient.h"

#include "kernels/cuda_build.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand rms_norm_gradient_operands[] = {
    {"d_y", Access::read},
    {"x", Access::read},
    {"weight", Access::read},
    {"statistics", Access::read},
    {"d_x", Access::read_write, norm_gradient_scalar::accumulate},
    {"partials", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork rms_norm_gradient_work(const KernelShape& shape, DType dtype,
                                  const KernelScalars& scalars) {
  return norm_gradient_work(NormKind::rms, shape, dtype, scalars);
}

// --- reference -----------------------------------------------------------------------------------

void rms_norm_gradient_reference(const KernelCall& call) {
  norm_gradient_reference(NormKind::rms, call);
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel rms_norm_gradient_kernel() {
  return {"rms_norm_gradient", rms_norm_gradient_operands, rms_norm_gradient_work,
          rms_norm_gradient_reference, in_cuda_builds<prepare_rms_norm_gradient>()};
}

}  // namespace stepgate
