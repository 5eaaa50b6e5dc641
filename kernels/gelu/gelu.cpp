// SPDX-License-Identifier: MIT
// The host side of gelu, gelu_gradient and bias_gelu: operands, work and the references. Meaning
// and shapes: gelu.h.
#include "kernels/gelu/gelu.h"

#include <cmath>
#include <tuple>

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand gelu_operands[] = {
    {"x", Access::read},
    {"y", Access::write},
};

constexpr KernelOperand gradient_operands[] = {
    {"x", Access::read},
    {"d_y", Access::read},
    {"d_x", Access::write},
};

constexpr KernelOperand bias_operands[] = {
    {"x", Access::read},
    {"bias", Access::read},
    {"pre", Access::write},
    {"y", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

// An exponential and a quotient count 1.
constexpr std::int64_t gelu_operations = 7;
constexpr std::int64_t gradient_operations = 15;

KernelWork gelu_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t bytes = elements_of(shape) * bytes_of(dtype);
  return {
      .bytes_read = bytes, .bytes_written = bytes, .flops = gelu_operations * elements_of(shape)};
}

KernelWork gradient_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t bytes = elements_of(shape) * bytes_of(dtype);
  return {.bytes_read = 2 * bytes,
          .bytes_written = bytes,
          .flops = gradient_operations * elements_of(shape)};
}

KernelWork bias_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t bytes = elements_of(shape) * bytes_of(dtype);
  return {.bytes_read = bytes + shape.columns * bytes_of(dtype),
          .bytes_written = 2 * bytes,
          .flops = (1 + gelu_operations) * elements_of(shape)};
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

Kernel gelu_kernel() {
  return {"gelu", gelu_operands, gelu_work, gelu_reference, in_cuda_builds<prepare_gelu>()};
}

Kernel gelu_gradient_kernel() {
  return {"gelu_gradient", gradient_operands, gradient_work, gradient_reference,
          in_cuda_builds<prepare_gelu_gradient>()};
}

Kernel bias_gelu_kernel() {
  return {"bias_gelu", bias_operands, bias_work, bias_reference,
          in_cuda_builds<prepare_bias_gelu>()};
}

}  // namespace stepgate
