// SPDX-License-Identifier: MIT
// Operands, work and references of the family on the host; the header has meaning and shapes.
#include "kernels/norm/norm.h"

#include <cmath>
#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
// layer: sum; subtract, square, sum; subtract, scale, weigh, shift. rms: square, sum; scale, weigh.
std::int64_t norm_operations(NormKind kind) {
  return kind == NormKind::layer ? 8 : 4;
}

// rms: normalise, weigh; multiply, sum; multiply, sum for the weight; multiply, subtract, scale.
// layer also subtracts the mean, sums twice more (rows, bias) and subtracts.
std::int64_t norm_gradient_operations(NormKind kind, const NormGradientAttributes& attributes) {
  return (kind == NormKind::layer ? 13 : 9) + (attributes.accumulate ? 1 : 0) +
         (attributes.sums_d_x ? 1 : 0);
}

void residual_reference(const KernelCall& call, const void* x, const void* branch,
                        const void* branch_bias, void* sum) {
  for (std::int64_t i = 0; i < call.shape.rows * call.shape.columns; ++i) {
    const double bias =
        branch_bias == nullptr ? 0 : number_at(branch_bias, call.dtype, i % call.shape.columns);
    const double added = number_at(branch, call.dtype, i) + bias;
    set_number(sum, call.dtype, i, number_at(x, call.dtype, i) + added);
  }
}

void norm_reference(NormKind kind, const KernelCall& call, double epsilon, const HostNorm& host) {
  const std::int64_t columns = call.shape.columns;
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const auto x = [&](std::int64_t c) { return number_at(host.x, call.dtype, row * columns + c); };
    double mean = 0, squares = 0;
    if (kind == NormKind::layer) {
      for (std::int64_t c = 0; c < columns; ++c) mean += x(c);
      mean /= static_cast<double>(columns);
    }
    for (std::int64_t c = 0; c < columns; ++c) squares += (x(c) - mean) * (x(c) - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
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

// With n = (x - mean) scale and g = d_y weight, both of the row:
//   d_x = scale (g - mean of g - n mean of (g n));  rms without the mean of g.
void norm_gradient_reference(NormKind kind, const KernelCall& call,
                             const NormGradientAttributes& attributes) {
  const auto [rows, columns, parts, unused] = call.shape;
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

namespace {

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

CheckedSize layer_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return norm_operations(NormKind::layer) * elements_of(shape);
}

CheckedSize residual_layer_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return (1 + norm_operations(NormKind::layer)) * elements_of(shape);
}

CheckedSize residual_bias_layer_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return (2 + norm_operations(NormKind::layer)) * elements_of(shape);
}

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

bool accumulates_d_x_of_layer(const KernelAttributes& attributes) {
  return attributes.as<kernels::LayerNormGradient>().accumulate;
}

CheckedSize layer_norm_partials(const CheckedShape& shape, DType,
                                const KernelAttributes& attributes) {
  return norm_partial_elements(NormKind::layer, shape, attributes.as<kernels::LayerNormGradient>());
}

constexpr KernelOperand layer_norm_gradient_operands[] = {
    {"d_y", Access::read, extent::elements},
    {"x", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"statistics", Access::read, extent::two_a_row, OperandFormat::single},
    {.name = "d_x",
     .access = Access::read_write,
     .elements = extent::elements,
     .accumulates = accumulates_d_x_of_layer},
    {"partials", Access::write, layer_norm_partials, OperandFormat::single},
};

CheckedSize layer_norm_gradient_flops(const CheckedShape& shape,
                                      const KernelAttributes& attributes) {
  return norm_gradient_operations(NormKind::layer, attributes.as<kernels::LayerNormGradient>()) *
         elements_of(shape);
}

void layer_norm_gradient_reference(const KernelCall& call) {
  norm_gradient_reference(NormKind::layer, call, call.attributes.as<kernels::LayerNormGradient>());
}

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

CheckedSize rms_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return norm_operations(NormKind::rms) * elements_of(shape);
}

CheckedSize residual_rms_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return (1 + norm_operations(NormKind::rms)) * elements_of(shape);
}

CheckedSize residual_bias_rms_norm_flops(const CheckedShape& shape, const KernelAttributes&) {
  return (2 + norm_operations(NormKind::rms)) * elements_of(shape);
}

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

bool accumulates_d_x_of_rms(const KernelAttributes& attributes) {
  return attributes.as<kernels::RmsNormGradient>().accumulate;
}

CheckedSize rms_norm_partials(const CheckedShape& shape, DType,
                              const KernelAttributes& attributes) {
  return norm_partial_elements(NormKind::rms, shape, attributes.as<kernels::RmsNormGradient>());
}

constexpr KernelOperand rms_norm_gradient_operands[] = {
    {"d_y", Access::read, extent::elements},
    {"x", Access::read, extent::elements},
    {"weight", Access::read, extent::columns},
    {"statistics", Access::read, extent::rows, OperandFormat::single},
    {.name = "d_x",
     .access = Access::read_write,
     .elements = extent::elements,
     .accumulates = accumulates_d_x_of_rms},
    {"partials", Access::write, rms_norm_partials, OperandFormat::single},
};

CheckedSize rms_norm_gradient_flops(const CheckedShape& shape, const KernelAttributes& attributes) {
  return norm_gradient_operations(NormKind::rms, attributes.as<kernels::RmsNormGradient>()) *
         elements_of(shape);
}

void rms_norm_gradient_reference(const KernelCall& call) {
  norm_gradient_reference(NormKind::rms, call, call.attributes.as<kernels::RmsNormGradient>());
}

}  // namespace

std::vector<Kernel> norm_kernels() {
  return {
      {kernels::LayerNorm::name, layer_norm_operands, layer_norm_flops, layer_norm_reference,
       in_cuda_builds<prepare_layer_norm>()},
      {kernels::ResidualLayerNorm::name, residual_layer_norm_operands, residual_layer_norm_flops,
       residual_layer_norm_reference, in_cuda_builds<prepare_residual_layer_norm>()},
      {kernels::ResidualBiasLayerNorm::name, residual_bias_layer_norm_operands,
       residual_bias_layer_norm_flops, residual_bias_layer_norm_reference,
       in_cuda_builds<prepare_residual_bias_layer_norm>()},
      {kernels::LayerNormGradient::name, layer_norm_gradient_operands, layer_norm_gradient_flops,
       layer_norm_gradient_reference, in_cuda_builds<prepare_layer_norm_gradient>()},
      {kernels::RmsNorm::name, rms_norm_operands, rms_norm_flops, rms_norm_reference,
       in_cuda_builds<prepare_rms_norm>()},
      {kernels::ResidualRmsNorm::name, residual_rms_norm_operands, residual_rms_norm_flops,
       residual_rms_norm_reference, in_cuda_builds<prepare_residual_rms_norm>()},
      {kernels::ResidualBiasRmsNorm::name, residual_bias_rms_norm_operands,
       residual_bias_rms_norm_flops, residual_bias_rms_norm_reference,
       in_cuda_builds<prepare_residual_bias_rms_norm>()},
      {kernels::RmsNormGradient::name, rms_norm_gradient_operands, rms_norm_gradient_flops,
       rms_norm_gradient_reference, in_cuda_builds<prepare_rms_norm_gradient>()}};
}

}  // namespace stepgate
