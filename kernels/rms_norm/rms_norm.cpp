// SPDX-License-Identifier: MIT
// The host side of rms_norm with and without a residual: operands; work and references are
// norm.cpp's. Meaning and shapes: rms_norm.h.
#include "kernels/rms_norm/rms_norm.h"

#include "kernels/cuda_build.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand rms_norm_operands[] = {
    {"x", Access::read},
    {"weight", Access::read},
    {"y", Access::write},
    {"statistics", Access::write},
};

constexpr KernelOperand residual_bias_rms_norm_operands[] = {
    {"x", Access::read},           {"branch", Access::read}, {"branch_bias", Access::read},
    {"weight", Access::read},      {"sum", Access::write},   {"y", Access::write},
    {"statistics", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork rms_norm_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  return norm_work(NormKind::rms, shape, dtype);
}

KernelWork residual_bias_rms_norm_work(const KernelShape& shape, DType dtype,
                                       const KernelScalars&) {
  return residual_bias_norm_work(NormKind::rms, shape, dtype);
}

// --- references ----------------------------------------------------------------------------------

void rms_norm_reference(const KernelCall& call) {
  const auto& at = call.buffers;
  norm_reference(NormKind::rms, call, {at[0], at[1], nullptr, at[2], static_cast<float*>(at[3])});
}

void residual_bias_rms_norm_reference(const KernelCall& call) {
  const auto& at = call.buffers;
  residual_reference(call, at[0], at[1], at[2], at[4]);
  norm_reference(NormKind::rms, call, {at[4], at[3], nullptr, at[5], static_cast<float*>(at[6])});
}

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

Kernel rms_norm_kernel() {
  return {"rms_norm", rms_norm_operands, rms_norm_work, rms_norm_reference,
          in_cuda_builds<prepare_rms_norm>()};
}

Kernel residual_bias_rms_norm_kernel() {
  return {"residual_bias_rms_norm", residual_bias_rms_norm_operands, residual_bias_rms_norm_work,
          residual_bias_rms_norm_reference, in_cuda_builds<prepare_residual_bias_rms_norm>()};
}

}  // namespace stepgate
