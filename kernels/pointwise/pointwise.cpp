// SPDX-License-Identifier: MIT
// Operands, work and host references of the pointwise kernels; pointwise.h has their meaning and
// shapes.
#include "kernels/pointwise/pointwise.h"

#include <cmath>
#include <tuple>

#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr auto add_operands = operands_of<kernels::Add>({
    {"x", Access::read, extent::elements},
    {"branch", Access::read, extent::elements},
    {.name = "sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
});

void add_reference(const CallOf<kernels::Add>& call) {
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    set_number(
        call.buffers[2], call.dtype, i,
        number_at(call.buffers[0], call.dtype, i) + number_at(call.buffers[1], call.dtype, i));
  }
}

constexpr auto bias_activation_operands = operands_of<kernels::BiasActivation>({
    {"x", Access::read, extent::elements},
    {"bias", Access::read, extent::columns},
    {.name = "y", .access = Access::write, .elements = extent::elements, .may_replace = 0},
});

void bias_activation_reference(const CallOf<kernels::BiasActivation>& call) {
  const auto [x, bias, y] = std::tuple{call.buffers[0], call.buffers[1], call.buffers[2]};
  const bool relu = call.attributes.relu;
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const double sum =
        number_at(x, call.dtype, i) + number_at(bias, call.dtype, i % call.shape.columns);
    set_number(y, call.dtype, i, relu && sum < 0 ? 0.0 : sum);
  }
}

constexpr auto numbers_of_images = [](const auto& s) { return s.samples * s.pixels * s.columns; };
constexpr auto of_samples = [](const auto& s) { return s.samples * s.columns; };

constexpr auto time_bias_operands = operands_of<kernels::TimeBias>({
    {"x", Access::read, numbers_of_images},
    {"bias", Access::read, extent::columns},
    {"time", Access::read, of_samples},
    {.name = "y", .access = Access::write, .elements = numbers_of_images, .may_replace = 0},
});

constexpr auto residual_bias_operands = operands_of<kernels::ResidualBias>({
    {"x", Access::read, numbers_of_images},
    {"bias", Access::read, extent::columns},
    {"residual", Access::read, numbers_of_images},
    {.name = "y", .access = Access::write, .elements = numbers_of_images, .may_replace = 0},
});

// Adds the bias and number third(i) of the third operand to element i of x.
template <class Third>
void add_with_bias(const CallOf<kernels::TimeBias>& call, Third third) {
  const auto& at = call.buffers;
  for (std::int64_t i = 0; i < numbers_of_images(call.shape); ++i)
    set_number(at[3], call.dtype, i,
               number_at(at[0], call.dtype, i) +
                   number_at(at[1], call.dtype, i % call.shape.columns) +
                   number_at(at[2], call.dtype, third(i)));
}

void time_bias_reference(const CallOf<kernels::TimeBias>& call) {
  const auto [samples, pixels, columns] = call.shape;
  add_with_bias(call, [pixels = pixels, columns = columns](std::int64_t i) {
    return i / columns / pixels * columns + i % columns;
  });
}

void residual_bias_reference(const CallOf<kernels::ResidualBias>& call) {
  add_with_bias(call, [](std::int64_t i) { return i; });
}

constexpr auto bias_gradient_operands = operands_of<kernels::BiasGradient>({
    {"dy", Access::read, extent::elements},
    {.name = "db",
     .access = Access::read_write,
     .elements = extent::columns,
     .accumulates = accumulates},
});

void bias_gradient_reference(const CallOf<kernels::BiasGradient>& call) {
  const std::int64_t rows = call.shape.rows;
  const std::int64_t columns = call.shape.columns;
  for (std::int64_t column = 0; column < columns; ++column) {
    double sum = call.attributes.accumulate ? number_at(call.buffers[1], call.dtype, column) : 0.0;
    for (std::int64_t row = 0; row < rows; ++row) {
      sum += number_at(call.buffers[0], call.dtype, row * columns + column);
    }
    set_number(call.buffers[1], call.dtype, column, sum);
  }
}

constexpr auto parts_of_columns = [](const auto& s) { return s.parts * s.columns; };

constexpr auto column_parts_operands = operands_of<kernels::ColumnParts>({
    {"dy", Access::read, extent::elements},
    {"partials", Access::write, parts_of_columns, OperandFormat::single},
});

void column_parts_reference(const CallOf<kernels::ColumnParts>& call) {
  const auto [rows, columns, parts] = call.shape;
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (std::int64_t row = part; row < rows; row += parts) {
        sum += number_at(call.buffers[0], call.dtype, row * columns + column);
      }
      set_number(call.buffers[1], single_of(call.dtype), part * columns + column, sum);
    }
  }
}

constexpr auto all_numbers = [](const auto& s) { return s.numbers; };

constexpr auto widen_operands = operands_of<kernels::Widen>({
    {"numbers", Access::read, all_numbers},
    {"wide", Access::write, all_numbers, OperandFormat::single},
});
constexpr auto narrow_operands = operands_of<kernels::Narrow>({
    {"wide", Access::read, all_numbers, OperandFormat::single},
    {"numbers", Access::write, all_numbers},
});

void copy_numbers(const CallOf<kernels::Widen>& call, DType from, DType to) {
  for (std::int64_t i = 0; i < call.shape.numbers; ++i)
    set_number(call.buffers[1], to, i, number_at(call.buffers[0], from, i));
}

void widen_reference(const CallOf<kernels::Widen>& call) {
  copy_numbers(call, call.dtype, DType::fp32);
}

void narrow_reference(const CallOf<kernels::Narrow>& call) {
  copy_numbers(call, DType::fp32, call.dtype);
}

constexpr auto gelu_operands = operands_of<kernels::Gelu>({
    {"x", Access::read, extent::elements},
    {.name = "y", .access = Access::write, .elements = extent::elements, .may_replace = 0},
});

constexpr auto gradient_operands = operands_of<kernels::GeluGradient>({
    {"x", Access::read, extent::elements},
    {"d_y", Access::read, extent::elements},
    {.name = "d_x", .access = Access::write, .elements = extent::elements, .may_replace = 1},
});

constexpr auto bias_operands = operands_of<kernels::BiasGelu>({
    {"x", Access::read, extent::elements},
    {"bias", Access::read, extent::columns},
    {.name = "pre", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"y", Access::write, extent::elements},
});

void gelu_reference(const CallOf<kernels::Gelu>& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    set_number(call.buffers[1], call.dtype, i, gelu(number_at(call.buffers[0], call.dtype, i)));
  }
}

void gradient_reference(const CallOf<kernels::GeluGradient>& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    set_number(call.buffers[2], call.dtype, i,
               number_at(call.buffers[1], call.dtype, i) *
                   gelu_slope_at(number_at(call.buffers[0], call.dtype, i)));
  }
}

void bias_reference(const CallOf<kernels::BiasGelu>& call) {
  const auto [x, bias, pre] = std::tuple{call.buffers[0], call.buffers[1], call.buffers[2]};
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    set_number(pre, call.dtype, i,
               number_at(x, call.dtype, i) + number_at(bias, call.dtype, i % call.shape.columns));
    set_number(call.buffers[3], call.dtype, i, gelu(number_at(pre, call.dtype, i)));
  }
}

void relu_reference(const CallOf<kernels::Relu>& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const double x = number_at(call.buffers[0], call.dtype, i);
    set_number(call.buffers[1], call.dtype, i, x < 0 ? 0.0 : x);
  }
}

constexpr auto relu_gradient_operands = operands_of<kernels::ReluGradient>({
    {"y", Access::read, extent::elements},
    {"dy", Access::read, extent::elements},
    {.name = "dx", .access = Access::write, .elements = extent::elements, .may_replace = 1},
});

void relu_gradient_reference(const CallOf<kernels::ReluGradient>& call) {
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const bool passes = number_at(call.buffers[0], call.dtype, i) > 0;
    set_number(call.buffers[2], call.dtype, i,
               passes ? number_at(call.buffers[1], call.dtype, i) : 0.0);
  }
}

constexpr auto sum_parts_operands = operands_of<kernels::SumParts>({
    {"partials", Access::read, parts_of_columns, OperandFormat::single},
    {.name = "sums",
     .access = Access::read_write,
     .elements = extent::columns,
     .accumulates = accumulates},
});

void sum_parts_reference(const CallOf<kernels::SumParts>& call) {
  for (std::int64_t column = 0; column < call.shape.columns; ++column) {
    double sum = call.attributes.accumulate ? number_at(call.buffers[1], call.dtype, column) : 0.0;
    for (std::int64_t part = 0; part < call.shape.parts; ++part) {
      sum += number_at(call.buffers[0], single_of(call.dtype), part * call.shape.columns + column);
    }
    set_number(call.buffers[1], call.dtype, column, sum);
  }
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

void silu_reference(const CallOf<kernels::Silu>& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const double x = number_at(call.buffers[0], call.dtype, i);
    set_number(call.buffers[1], call.dtype, i, x * logistic(x));
  }
}

void silu_gradient_reference(const CallOf<kernels::SiluGradient>& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const double x = number_at(call.buffers[0], call.dtype, i), s = logistic(x);
    set_number(call.buffers[2], call.dtype, i,
               number_at(call.buffers[1], call.dtype, i) * s * (1 + x * (1 - s)));
  }
}

constexpr auto gates_and_ups = [](const auto& s) { return 2 * elements_of(s); };

constexpr auto swiglu_operands = operands_of<kernels::Swiglu>({
    {"x", Access::read, gates_and_ups},
    {"y", Access::write, extent::elements},
});

constexpr auto swiglu_gradient_operands = operands_of<kernels::SwigluGradient>({
    {"x", Access::read, gates_and_ups},
    {"d_y", Access::read, extent::elements},
    {.name = "d_x", .access = Access::write, .elements = gates_and_ups, .may_replace = 0},
});

// Index of the gate of element i of the result.
std::int64_t gate_of(const MatrixShape& shape, std::int64_t i) {
  return i + i / shape.columns * shape.columns;
}

void swiglu_reference(const CallOf<kernels::Swiglu>& call) {
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const std::int64_t place = gate_of(call.shape, i);
    const double gate = number_at(call.buffers[0], call.dtype, place);
    const double up = number_at(call.buffers[0], call.dtype, place + call.shape.columns);
    set_number(call.buffers[1], call.dtype, i, gate * logistic(gate) * up);
  }
}

void swiglu_gradient_reference(const CallOf<kernels::SwigluGradient>& call) {
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

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(gelu_slope * (x + gelu_cubic * x * x * x)));
}

double gelu_slope_at(double x) {
  const double tangent = std::tanh(gelu_slope * (x + gelu_cubic * x * x * x));
  const double inner = gelu_slope * (1 + 3 * gelu_cubic * x * x);
  return 0.5 * (1 + tangent) + 0.5 * x * (1 - tangent * tangent) * inner;
}

std::vector<Kernel> pointwise_kernels() {
  return {
      row<kernels::Add, add_reference>(add_operands, flops_an_element<1>),
      row<kernels::BiasActivation, bias_activation_reference>(
          bias_activation_operands,
          [](const auto& shape, const auto& told) {
            return elements_of(shape) * (told.relu ? 2 : 1);
          }),
      row<kernels::TimeBias, time_bias_reference>(
          time_bias_operands, [](const auto& s) { return 2 * numbers_of_images(s); }),
      row<kernels::ResidualBias, residual_bias_reference>(
          residual_bias_operands, [](const auto& s) { return 2 * numbers_of_images(s); }),
      row<kernels::BiasGradient, bias_gradient_reference>(bias_gradient_operands,
                                                          flops_an_element<1>),
      row<kernels::ColumnParts, column_parts_reference>(column_parts_operands, flops_an_element<1>),
      row<kernels::Widen, widen_reference>(widen_operands, no_flops),
      row<kernels::Narrow, narrow_reference>(narrow_operands, no_flops),
      row<kernels::Gelu, gelu_reference>(gelu_operands, flops_an_element<gelu_operations>),
      row<kernels::GeluGradient, gradient_reference>(gradient_operands, flops_an_element<15>),
      row<kernels::BiasGelu, bias_reference>(bias_operands,
                                             flops_an_element<(1 + gelu_operations)>),
      row<kernels::Silu, silu_reference>(gelu_operands, flops_an_element<4>),
      row<kernels::SiluGradient, silu_gradient_reference>(gradient_operands, flops_an_element<8>),
      row<kernels::Relu, relu_reference>(gelu_operands, flops_an_element<1>),
      row<kernels::ReluGradient, relu_gradient_reference>(relu_gradient_operands,
                                                          flops_an_element<1>),
      row<kernels::SumParts, sum_parts_reference>(sum_parts_operands, parts_of_columns),
      row<kernels::Swiglu, swiglu_reference>(swiglu_operands, flops_an_element<4>),
      row<kernels::SwigluGradient, swiglu_gradient_reference>(swiglu_gradient_operands,
                                                              flops_an_element<11>)};
}

}  // namespace stepgate
