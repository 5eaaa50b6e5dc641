// SPDX-License-Identifier: MIT
// Operands, work and host references of the norms; norm.h has their meaning and shapes.
#include "kernels/norm/norm.h"

#include <cmath>
#include <vector>

#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

struct HostNorm {
  const void* x;
  const void* weight;
  const void* bias;  // null for rms_norm
  void* y;
  float* statistics;
};

// Flops per element of the norm. layer: sum; subtract, square, sum; subtract, scale, weight, bias.
// rms: square, sum; scale, weight.
std::int64_t norm_operations(NormKind kind) {
  return kind == NormKind::layer ? 8 : 4;
}

// Flops per element of the gradient. rms: normalise, weight; multiply, sum; multiply, sum for the
// weight; multiply, subtract, scale. layer also subtracts the mean, computes two more sums (row,
// bias) and subtracts once more.
std::int64_t norm_gradient_operations(NormKind kind, const NormGradientAttributes& attributes) {
  return (kind == NormKind::layer ? 13 : 9) + (attributes.accumulate ? 1 : 0) +
         (attributes.sums_d_x ? 1 : 0);
}

// Computes sum = x + branch + branch_bias, rounded to storage; a null bias is left out.
void residual_reference(const CallOf<kernels::LayerNorm>& call, const void* x, const void* branch,
                        const void* branch_bias, void* sum) {
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const double bias =
        branch_bias == nullptr ? 0 : number_at(branch_bias, call.dtype, i % call.shape.columns);
    const double added = number_at(branch, call.dtype, i) + bias;
    set_number(sum, call.dtype, i, number_at(x, call.dtype, i) + added);
  }
}

void norm_reference(NormKind kind, const CallOf<kernels::LayerNorm>& call, const HostNorm& host) {
  const std::int64_t columns = call.shape.columns;
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const auto x = [&](std::int64_t c) { return number_at(host.x, call.dtype, row * columns + c); };
    double mean = 0, squares = 0;
    if (kind == NormKind::layer) {
      for (std::int64_t c = 0; c < columns; ++c) mean += x(c);
      mean /= static_cast<double>(columns);
    }
    for (std::int64_t c = 0; c < columns; ++c) squares += (x(c) - mean) * (x(c) - mean);
    const double scale =
        1 / std::sqrt(squares / static_cast<double>(columns) + call.attributes.epsilon);
    float* statistics = host.statistics + row * statistics_of(kind);
    if (kind == NormKind::layer) *statistics++ = static_cast<float>(mean);
    *statistics = static_cast<float>(scale);
    for (std::int64_t c = 0; c < columns; ++c) {
      const double shift = host.bias == nullptr ? 0 : number_at(host.bias, call.dtype, c);
      set_number(host.y, call.dtype, row * columns + c,
                 (x(c) - mean) * scale * number_at(host.weight, call.dtype, c) + shift);
    }
  }
}

// With n = (x - mean) scale and g = d_y weight of a row, computes
//   d_x = scale (g - mean of g - n mean of (g n)),  in rms without the mean of g.
// The operands are d_y, x, weight, statistics, d_x, partials.
void norm_gradient_reference(NormKind kind, const CallOf<kernels::LayerNormGradient>& call) {
  const NormGradientAttributes& attributes = call.attributes;
  const auto [rows, columns, parts] = call.shape;
  const bool is_layer = kind == NormKind::layer;
  const auto count = static_cast<std::size_t>(columns);
  std::vector<double> partials(
      static_cast<std::size_t>(norm_partial_elements(kind, checked(call.shape), attributes)));
  double* of_d_x = partials.data() + parts * parameters_of(kind) * columns;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* statistics =
        static_cast<const float*>(call.buffers[3]) + row * statistics_of(kind);
    const double mean = is_layer ? statistics[0] : 0;
    const double scale = statistics[is_layer ? 1 : 0];
    double* part = partials.data() + row % parts * parameters_of(kind) * columns;
    std::vector<double> normalised(count), weighed(count);
    double sum = 0, projection = 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double d_y = number_at(call.buffers[0], call.dtype, row * columns + c);
      normalised[c] = (number_at(call.buffers[1], call.dtype, row * columns + c) - mean) * scale;
      weighed[c] = d_y * number_at(call.buffers[2], call.dtype, c);
      sum += is_layer ? weighed[c] : 0;
      projection += weighed[c] * normalised[c];
      part[c] += d_y * normalised[c];
      if (is_layer) part[columns + c] += d_y;
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t i = row * columns + c;
      const double old = attributes.accumulate ? number_at(call.buffers[4], call.dtype, i) : 0;
      const double inner =
          weighed[c] - (sum + normalised[c] * projection) / static_cast<double>(columns);
      set_number(call.buffers[4], call.dtype, i, old + scale * inner);
      if (attributes.sums_d_x) of_d_x[row % parts * columns + c] += old + scale * inner;
    }
  }
  auto* stored = static_cast<float*>(call.buffers[5]);
  for (std::size_t i = 0; i < partials.size(); ++i) stored[i] = static_cast<float>(partials[i]);
}

constexpr auto layer_norm_operands = operands_of<kernels::LayerNorm>({
    {"x", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"bias", Access::read, extent::columns},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::two_a_row, OperandFormat::single},
});

constexpr auto residual_layer_norm_operands = operands_of<kernels::ResidualLayerNorm>({
    {"x", Access::read, extent::elements},
    {"branch", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"bias", Access::read, extent::columns},
    {.name = "sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::two_a_row, OperandFormat::single},
});

constexpr auto residual_bias_layer_norm_operands = operands_of<kernels::ResidualBiasLayerNorm>({
    {"x", Access::read, extent::elements},
    {"branch", Access::read, extent::elements},
    {"branch_bias", Access::read, extent::columns},
    {"weight", Access::read, extent::columns},
    {"bias", Access::read, extent::columns},
    {.name = "sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::two_a_row, OperandFormat::single},
});

void layer_norm_reference(const CallOf<kernels::LayerNorm>& call) {
  const auto& at = call.buffers;
  norm_reference(NormKind::layer, call, {at[0], at[1], at[2], at[3], static_cast<float*>(at[4])});
}

void residual_layer_norm_reference(const CallOf<kernels::ResidualLayerNorm>& call) {
  const auto& at = call.buffers;
  residual_reference(call, at[0], at[1], nullptr, at[4]);
  norm_reference(NormKind::layer, call, {at[4], at[2], at[3], at[5], static_cast<float*>(at[6])});
}

void residual_bias_layer_norm_reference(const CallOf<kernels::ResidualBiasLayerNorm>& call) {
  const auto& at = call.buffers;
  residual_reference(call, at[0], at[1], at[2], at[5]);
  norm_reference(NormKind::layer, call, {at[5], at[3], at[4], at[6], static_cast<float*>(at[7])});
}

template <NormKind kind>
constexpr auto partials =
    [](const PartsSizes<CheckedSize>& shape, const NormGradientAttributes& told) {
      return norm_partial_elements(kind, shape, told);
    };

template <NormKind kind>
constexpr auto gradient_flops = [](const auto& shape, const NormGradientAttributes& told) {
  return norm_gradient_operations(kind, told) * elements_of(shape);
};

constexpr auto layer_norm_gradient_operands = operands_of<kernels::LayerNormGradient>({
    {"d_y", Access::read, extent::elements},
    {"x", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"statistics", Access::read, extent::two_a_row, OperandFormat::single},
    {.name = "d_x",
     .access = Access::read_write,
     .elements = extent::elements,
     .accumulates = accumulates},
    {"partials", Access::write, partials<NormKind::layer>, OperandFormat::single},
});

void layer_norm_gradient_reference(const CallOf<kernels::LayerNormGradient>& call) {
  norm_gradient_reference(NormKind::layer, call);
}

constexpr auto rms_norm_operands = operands_of<kernels::RmsNorm>({
    {"x", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::rows, OperandFormat::single},
});

constexpr auto residual_rms_norm_operands = operands_of<kernels::ResidualRmsNorm>({
    {"x", Access::read, extent::elements},
    {"branch", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {.name = "sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::rows, OperandFormat::single},
});

constexpr auto residual_bias_rms_norm_operands = operands_of<kernels::ResidualBiasRmsNorm>({
    {"x", Access::read, extent::elements},
    {"branch", Access::read, extent::elements},
    {"branch_bias", Access::read, extent::columns},
    {"weight", Access::read, extent::columns},
    {.name = "sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"y", Access::write, extent::elements},
    {"statistics", Access::write, extent::rows, OperandFormat::single},
});

void rms_norm_reference(const CallOf<kernels::RmsNorm>& call) {
  const auto& at = call.buffers;
  norm_reference(NormKind::rms, call, {at[0], at[1], nullptr, at[2], static_cast<float*>(at[3])});
}

void residual_rms_norm_reference(const CallOf<kernels::ResidualRmsNorm>& call) {
  const auto& at = call.buffers;
  residual_reference(call, at[0], at[1], nullptr, at[3]);
  norm_reference(NormKind::rms, call, {at[3], at[2], nullptr, at[4], static_cast<float*>(at[5])});
}

void residual_bias_rms_norm_reference(const CallOf<kernels::ResidualBiasRmsNorm>& call) {
  const auto& at = call.buffers;
  residual_reference(call, at[0], at[1], at[2], at[4]);
  norm_reference(NormKind::rms, call, {at[4], at[3], nullptr, at[5], static_cast<float*>(at[6])});
}

constexpr auto rms_norm_gradient_operands = operands_of<kernels::RmsNormGradient>({
    {"d_y", Access::read, extent::elements},
    {"x", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"statistics", Access::read, extent::rows, OperandFormat::single},
    {.name = "d_x",
     .access = Access::read_write,
     .elements = extent::elements,
     .accumulates = accumulates},
    {"partials", Access::write, partials<NormKind::rms>, OperandFormat::single},
});

void rms_norm_gradient_reference(const CallOf<kernels::RmsNormGradient>& call) {
  norm_gradient_reference(NormKind::rms, call);
}

}  // namespace

std::vector<Kernel> norm_kernels() {
  return {
      row<kernels::LayerNorm, layer_norm_reference>(
          layer_norm_operands,
          [](const auto& shape) { return norm_operations(NormKind::layer) * elements_of(shape); }),
      row<kernels::ResidualLayerNorm, residual_layer_norm_reference>(
          residual_layer_norm_operands,
          [](const auto& shape) {
            return (1 + norm_operations(NormKind::layer)) * elements_of(shape);
          }),
      row<kernels::ResidualBiasLayerNorm, residual_bias_layer_norm_reference>(
          residual_bias_layer_norm_operands,
          [](const auto& shape) {
            return (2 + norm_operations(NormKind::layer)) * elements_of(shape);
          }),
      row<kernels::LayerNormGradient, layer_norm_gradient_reference>(
          layer_norm_gradient_operands, gradient_flops<NormKind::layer>),
      row<kernels::RmsNorm, rms_norm_reference>(
          rms_norm_operands,
          [](const auto& shape) { return norm_operations(NormKind::rms) * elements_of(shape); }),
      row<kernels::ResidualRmsNorm, residual_rms_norm_reference>(
          residual_rms_norm_operands,
          [](const auto& shape) {
            return (1 + norm_operations(NormKind::rms)) * elements_of(shape);
          }),
      row<kernels::ResidualBiasRmsNorm, residual_bias_rms_norm_reference>(
          residual_bias_rms_norm_operands,
          [](const auto& shape) {
            return (2 + norm_operations(NormKind::rms)) * elements_of(shape);
          }),
      row<kernels::RmsNormGradient, rms_norm_gradient_reference>(rms_norm_gradient_operands,
                                                                 gradient_flops<NormKind::rms>)};
}

}  // namespace stepgate
