// SPDX-License-Identifier: MIT
// Operands, work and references of the family on the host; the header has meaning and shapes.
#include "kernels/pointwise/pointwise.h"

#include <cmath>
#include <tuple>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr KernelOperand add_operands[] = {
    {"x", Access::read, extent::elements},
    {"branch", Access::read, extent::elements},
    {.name = "sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
};

CheckedSize add_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

void add_reference(const KernelCall& call) {
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    set_number(
        call.buffers[2], call.dtype, i,
        number_at(call.buffers[0], call.dtype, i) + number_at(call.buffers[1], call.dtype, i));
  }
}

constexpr KernelOperand bias_activation_operands[] = {
    {"x", Access::read, extent::elements},
    {"bias", Access::read, extent::columns},
    {.name = "y", .access = Access::write, .elements = extent::elements, .may_replace = 0},
};

CheckedSize bias_activation_flops(const CheckedShape& shape, const KernelAttributes& attributes) {
  return elements_of(shape) * (attributes.as<kernels::BiasActivation>().relu ? 2 : 1);
}

void bias_activation_reference(const KernelCall& call) {
  const auto [x, bias, y] = std::tuple{call.buffers[0], call.buffers[1], call.buffers[2]};
  const bool relu = call.attributes.as<kernels::BiasActivation>().relu;
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const double sum =
        number_at(x, call.dtype, i) + number_at(bias, call.dtype, i % call.shape.columns);
    set_number(y, call.dtype, i, relu && sum < 0 ? 0.0 : sum);
  }
}

bool accumulates_bias_gradient(const KernelAttributes& attributes) {
  return attributes.as<kernels::BiasGradient>().accumulate;
}

constexpr KernelOperand bias_gradient_operands[] = {
    {"dy", Access::read, extent::elements},
    {.name = "db",
     .access = Access::read_write,
     .elements = extent::columns,
     .accumulates = accumulates_bias_gradient},
};

CheckedSize bias_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

void bias_gradient_reference(const KernelCall& call) {
  const std::int64_t rows = call.shape.rows;
  const std::int64_t columns = call.shape.columns;
  for (std::int64_t column = 0; column < columns; ++column) {
    double sum = accumulates_bias_gradient(call.attributes)
                     ? number_at(call.buffers[1], call.dtype, column)
                     : 0.0;
    for (std::int64_t row = 0; row < rows; ++row) {
      sum += number_at(call.buffers[0], call.dtype, row * columns + column);
    }
    set_number(call.buffers[1], call.dtype, column, sum);
  }
}

constexpr KernelOperand column_parts_operands[] = {
    {"dy", Access::read, extent::elements},
    {"partials", Access::write, extent::depth_by_columns, OperandFormat::single},
};

CheckedSize column_parts_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

void column_parts_reference(const KernelCall& call) {
  const auto [rows, columns, parts, unused] = call.shape;
  auto* partials = static_cast<float*>(call.buffers[1]);
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (std::int64_t row = part; row < rows; row += parts) {
        sum += number_at(call.buffers[0], call.dtype, row * columns + column);
      }
      partials[part * columns + column] = static_cast<float>(sum);
    }
  }
}

constexpr KernelOperand widen_operands[] = {
    {"numbers", Access::read, extent::columns},
    {"wide", Access::write, extent::columns, OperandFormat::single},
};
constexpr KernelOperand narrow_operands[] = {
    {"wide", Access::read, extent::columns, OperandFormat::single},
    {"numbers", Access::write, extent::columns},
};

CheckedSize no_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

void copy_numbers(const KernelCall& call, DType from, DType to) {
  for (std::int64_t i = 0; i < call.shape.columns; ++i)
    set_number(call.buffers[1], to, i, number_at(call.buffers[0], from, i));
}

void widen_reference(const KernelCall& call) {
  copy_numbers(call, call.dtype, DType::fp32);
}

void narrow_reference(const KernelCall& call) {
  copy_numbers(call, DType::fp32, call.dtype);
}

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

constexpr KernelOperand relu_gradient_operands[] = {
    {"y", Access::read, extent::elements},
    {"dy", Access::read, extent::elements},
    {.name = "dx", .access = Access::write, .elements = extent::elements, .may_replace = 1},
};

CheckedSize relu_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

void relu_gradient_reference(const KernelCall& call) {
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const bool passes = number_at(call.buffers[0], call.dtype, i) > 0;
    set_number(call.buffers[2], call.dtype, i,
               passes ? number_at(call.buffers[1], call.dtype, i) : 0.0);
  }
}

bool accumulates_sum(const KernelAttributes& attributes) {
  return attributes.as<kernels::SumParts>().accumulate;
}

constexpr KernelOperand sum_parts_operands[] = {
    {"partials", Access::read, extent::depth_by_columns, OperandFormat::single},
    {.name = "sums",
     .access = Access::read_write,
     .elements = extent::columns,
     .accumulates = accumulates_sum},
};

CheckedSize sum_parts_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.depth * shape.columns;
}

void sum_parts_reference(const KernelCall& call) {
  const auto* partials = static_cast<const float*>(call.buffers[0]);
  for (std::int64_t column = 0; column < call.shape.columns; ++column) {
    double sum =
        accumulates_sum(call.attributes) ? number_at(call.buffers[1], call.dtype, column) : 0.0;
    for (std::int64_t part = 0; part < call.shape.depth; ++part) {
      sum += partials[part * call.shape.columns + column];
    }
    set_number(call.buffers[1], call.dtype, column, sum);
  }
}

CheckedSize gates_and_ups(const CheckedShape& shape, DType, const KernelAttributes&) {
  return 2 * elements_of(shape);
}

constexpr KernelOperand swiglu_operands[] = {
    {"x", Access::read, gates_and_ups},
    {"y", Access::write, extent::elements},
};

constexpr KernelOperand swiglu_gradient_operands[] = {
    {"x", Access::read, gates_and_ups},
    {"d_y", Access::read, extent::elements},
    {.name = "d_x", .access = Access::write, .elements = gates_and_ups, .may_replace = 0},
};

// An exponential and a quotient count 1.
CheckedSize swiglu_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 4 * elements_of(shape);
}

CheckedSize swiglu_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 11 * elements_of(shape);
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

// Index of the gate of element i of the result.
std::int64_t gate_of(const KernelShape& shape, std::int64_t i) {
  return i + i / shape.columns * shape.columns;
}

void swiglu_reference(const KernelCall& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const std::int64_t place = gate_of(call.shape, i);
    const double gate = number_at(call.buffers[0], call.dtype, place);
    const double up = number_at(call.buffers[0], call.dtype, place + call.shape.columns);
    set_number(call.buffers[1], call.dtype, i, gate * logistic(gate) * up);
  }
}

void swiglu_gradient_reference(const KernelCall& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const std::int64_t place = gate_of(call.shape, i);
    const double gate = number_at(call.buffers[0], call.dtype, place);
    const double up = number_at(call.buffers[0], call.dtype, place + call.shape.columns);
    const double d_y = number_at(call.buffers[1], call.dtype, i);
    const double s = logistic(gate);
    set_number(call.buffers[2], call.dtype, place, d_y * up * s * (1 + gate * (1 - s)));
    set_number(call.buffers[2], call.dtype, place + call.shape.columns, d_y * gate * s);
  }
}

}  // namespace

std::vector<Kernel> pointwise_kernels() {
  return {
      {kernels::Add::name, add_operands, add_flops, add_reference, in_cuda_builds<prepare_add>()},
      {kernels::BiasActivation::name, bias_activation_operands, bias_activation_flops,
       bias_activation_reference, in_cuda_builds<prepare_bias_activation>()},
      {kernels::BiasGradient::name, bias_gradient_operands, bias_gradient_flops,
       bias_gradient_reference, in_cuda_builds<prepare_bias_gradient>()},
      {kernels::ColumnParts::name, column_parts_operands, column_parts_flops,
       column_parts_reference, in_cuda_builds<prepare_column_parts>()},
      {kernels::Widen::name, widen_operands, no_flops, widen_reference,
       in_cuda_builds<prepare_widen>()},
      {kernels::Narrow::name, narrow_operands, no_flops, narrow_reference,
       in_cuda_builds<prepare_narrow>()},
      {kernels::Gelu::name, gelu_operands, gelu_flops, gelu_reference,
       in_cuda_builds<prepare_gelu>()},
      {kernels::GeluGradient::name, gradient_operands, gradient_flops, gradient_reference,
       in_cuda_builds<prepare_gelu_gradient>()},
      {kernels::BiasGelu::name, bias_operands, bias_flops, bias_reference,
       in_cuda_builds<prepare_bias_gelu>()},
      {kernels::ReluGradient::name, relu_gradient_operands, relu_gradient_flops,
       relu_gradient_reference, in_cuda_builds<prepare_relu_gradient>()},
      {kernels::SumParts::name, sum_parts_operands, sum_parts_flops, sum_parts_reference,
       in_cuda_builds<prepare_sum_parts>()},
      {kernels::Swiglu::name, swiglu_operands, swiglu_flops, swiglu_reference,
       in_cuda_builds<prepare_swiglu>()},
      {kernels::SwigluGradient::name, swiglu_gradient_operands, swiglu_gradient_flops,
       swiglu_gradient_reference, in_cuda_builds<prepare_swiglu_gradient>()}};
}

}  // namespace stepgate
