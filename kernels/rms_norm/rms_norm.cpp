// SPDX-License-Identifier: MIT
// The host side of rms_norm with and without a residual: operands; work and references are
// norm.cpp's. Meaning and shapes: rms_norm.h.
#include "kernels/rms_norm/rms_norm.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand rms_norm_operands[] = {
    {"x", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::rows, OperandFormat::single},
};

constexpr KernelOperand residual_rms_norm_operands[] = {
    {"x", Access::read, extent::elements},
    {"branch", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {.name = "sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::rows, OperandFormat::single},
};

constexpr KernelOperand residual_bias_rms_norm_operands[] = {
    {"x", Access::read, extent::elements},
    {"branch", Access::read, extent::elements},
    {"branch_bias", Access::read, extent::columns},
    {"weight", Access::read, extent::columns},
    {.name = "sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::rows, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize rms_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return norm_operations(NormKind::rms) * elements_of(shape);
}

CheckedSize residual_rms_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return (1 + norm_operations(NormKind::rms)) * elements_of(shape);
}

CheckedSize residual_bias_rms_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return (2 + norm_operations(NormKind::rms)) * elements_of(shape);
}

// --- references ----------------------------------------------------------------------------------

void rms_norm_reference(const KernelCall& call) {
  const auto& at = call.buffers;
  norm_reference(NormKind::rms, call, call.attributes.as<kernels::RmsNorm>().epsilon,
                 {at[0], at[1], nullptr, at[2], static_cast<float*>(at[3])});
}

void residual_rms_norm_reference(const KernelCall& call) {
  const auto& at = call.buffers;
  residual_reference(call, at[0], at[1], nullptr, at[3]);
  norm_reference(NormKind::rms, call, call.attributes.as<kernels::ResidualRmsNorm>().epsilon,
                 {at[3], at[2], nullptr, at[4], static_cast<float*>(at[5])});
}

void residual_bias_rms_norm_reference(const KernelCall& call) {
  const auto& at = call.buffers;
  residual_reference(call, at[0], at[1], at[2], at[4]);
  norm_reference(NormKind::rms, call, call.attributes.as<kernels::ResidualBiasRmsNorm>().epsilon,
                 {at[4], at[3], nullptr, at[5], static_cast<float*>(at[6])});
}

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

std::vector<Kernel> rms_norm_kernels() {
  return {{kernels::RmsNorm::name, rms_norm_operands, rms_norm_flops, rms_norm_reference,
           in_cuda_builds<prepare_rms_norm>()},
          {kernels::ResidualRmsNorm::name, residual_rms_norm_operands, residual_rms_norm_flops,
           residual_rms_norm_reference, in_cuda_builds<prepare_residual_rms_norm>()},
          {kernels::ResidualBiasRmsNorm::name, residual_bias_rms_norm_operands,
           residual_bias_rms_norm_flops, residual_bias_rms_norm_reference,
           in_cuda_builds<prepare_residual_bias_rms_norm>()}};
}

}  // namespace stepgate
