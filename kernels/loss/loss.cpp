// SPDX-License-Identifier: MIT
// Operands, work and host references of the loss kernels; loss.h has their meaning and shapes.
#include "kernels/loss/loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr auto cross_entropy_operands = operands_of<kernels::CrossEntropy>({
    {"logits", Access::read, extent::elements},
    {.name = "labels",
     .access = Access::read,
     .elements = extent::rows,
     .format = OperandFormat::index,
     .below = extent::columns},
    {.name = "gradient", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"row_losses", Access::write, extent::rows, OperandFormat::single},
});

constexpr auto scaled_operands = operands_of<kernels::ScaledCrossEntropy>({
    {"logits", Access::read, extent::elements},
    {.name = "labels",
     .access = Access::read,
     .elements = extent::rows,
     .format = OperandFormat::index,
     .below = extent::columns},
    {"scale", Access::read, extent::one, OperandFormat::single},
    {.name = "gradient", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"row_losses", Access::write, extent::rows, OperandFormat::single},
});

void differentiate(const CallOf<kernels::CrossEntropy>& call, double scale, void* gradient,
                   void* row_losses) {
  const std::int64_t rows = call.shape.rows;
  const std::int64_t columns = call.shape.columns;
  const std::int64_t classes = classes_of(call.shape, call.attributes);
  const auto* labels = static_cast<const std::int32_t*>(call.buffers[1]);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t label = labels[row];
    if (label < 0) {
      set_number(row_losses, single_of(call.dtype), row, 0);
      for (std::int64_t c = 0; c < columns; ++c)
        set_number(gradient, call.dtype, row * columns + c, 0);
      continue;
    }
    // The logits are copied, since the gradient may overwrite them.
    std::vector<double> logits(static_cast<std::size_t>(classes));
    for (std::int64_t c = 0; c < classes; ++c) {
      logits[c] = number_at(call.buffers[0], call.dtype, row * columns + c);
    }
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - largest);
    set_number(row_losses, single_of(call.dtype), row, std::log(sum) + largest - logits[label]);
    for (std::int64_t c = classes; c < columns; ++c)
      set_number(gradient, call.dtype, row * columns + c, 0);
    for (std::int64_t c = 0; c < classes; ++c) {
      const double probability = std::exp(logits[c] - largest) / sum;
      set_number(gradient, call.dtype, row * columns + c,
                 scale * (probability - (c == label ? 1.0 : 0.0)) /
                     rows_of_mean(call.shape, call.attributes));
    }
  }
}

void cross_entropy_reference(const CallOf<kernels::CrossEntropy>& call) {
  differentiate(call, 1, call.buffers[2], call.buffers[3]);
}

void scaled_reference(const CallOf<kernels::ScaledCrossEntropy>& call) {
  const double scale = number_at(call.buffers[2], single_of(call.dtype), 0);
  differentiate(call, scale, call.buffers[3], call.buffers[4]);
}

constexpr auto squared_error_operands = operands_of<kernels::SquaredError>({
    {"prediction", Access::read, extent::elements},
    {"target", Access::read, extent::elements},
    {.name = "gradient", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"row_losses", Access::write, extent::rows, OperandFormat::single},
});

void squared_error_reference(const CallOf<kernels::SquaredError>& call) {
  const auto [rows, columns] = call.shape;
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t i = row * columns; i < (row + 1) * columns; ++i) {
      const double error =
          number_at(call.buffers[0], call.dtype, i) - number_at(call.buffers[1], call.dtype, i);
      sum += error * error;
      set_number(call.buffers[2], call.dtype, i, 2 * error / static_cast<double>(rows * columns));
    }
    set_number(call.buffers[3], single_of(call.dtype), row, sum / static_cast<double>(columns));
  }
}

constexpr auto mean_loss_operands = operands_of<kernels::MeanLoss>({
    {"sum", Access::read_write, extent::one, OperandFormat::single},
    {"mean", Access::write, extent::one, OperandFormat::single},
});

void mean_loss_reference(const CallOf<kernels::MeanLoss>& call) {
  auto* sum = static_cast<float*>(call.buffers[0]);
  *static_cast<float*>(call.buffers[1]) =
      static_cast<float>(*sum / static_cast<double>(call.attributes.count));
  *sum = 0;
}

constexpr auto accumulate_loss_operands = operands_of<kernels::AccumulateLoss>({
    {"loss", Access::read, extent::one, OperandFormat::single},
    {"sum", Access::read_write, extent::one, OperandFormat::single},
});

void accumulate_loss_reference(const CallOf<kernels::AccumulateLoss>& call) {
  *static_cast<float*>(call.buffers[1]) += *static_cast<const float*>(call.buffers[0]);
}

constexpr auto capacity = [](const auto&, const auto& told) -> CheckedSize {
  return told.capacity;
};

constexpr auto report_loss_operands = operands_of<kernels::ReportLoss>({
    {"row_losses", Access::read, extent::rows, OperandFormat::single},
    {"loss", Access::write, extent::one, OperandFormat::single},
    {.name = "history",
     .access = Access::read_write,
     .elements = capacity,
     .format = OperandFormat::single,
     .touched = extent::one,
     .keeps_rest = true},
    {.name = "stamps",
     .access = Access::read_write,
     .elements = capacity,
     .format = OperandFormat::count,
     .touched = extent::one,
     .keeps_rest = true},
    {"counter", Access::read_write, extent::one, OperandFormat::count},
    {.name = "cycles",
     .access = Access::read_write,
     .elements = [](const auto&, const auto& told) { return 2 * CheckedSize(told.capacity); },
     .format = OperandFormat::count,
     .touched = [](const auto&) -> CheckedSize { return 2; },
     .keeps_rest = true},
});

void report_loss_reference(const CallOf<kernels::ReportLoss>& call) {
  const auto* row_losses = static_cast<const float*>(call.buffers[0]);
  auto* counter = static_cast<std::uint64_t*>(call.buffers[4]);
  double sum = 0;
  for (std::int64_t row = 0; row < call.shape.rows; ++row) sum += row_losses[row];
  const auto loss =
      static_cast<float>(sum / static_cast<double>(rows_of_loss(call.shape, call.attributes)));
  const auto capacity = static_cast<std::uint64_t>(call.attributes.capacity);
  const std::uint64_t entry = *counter % capacity;
  *static_cast<float*>(call.buffers[1]) = loss;
  static_cast<float*>(call.buffers[2])[entry] = loss;
  static_cast<std::uint64_t*>(call.buffers[3])[entry] = 0;
  static_cast<std::uint64_t*>(call.buffers[5])[2 * entry] = 0;
  static_cast<std::uint64_t*>(call.buffers[5])[2 * entry + 1] = 0;
  *counter += 1;
}

}  // namespace

std::vector<Kernel> loss_kernels() {
  // The five operations per element are maximum, subtract, exponential, sum and scale.
  return {row<kernels::CrossEntropy, cross_entropy_reference>(cross_entropy_operands,
                                                              flops_an_element<5>),
          row<kernels::ScaledCrossEntropy, scaled_reference>(scaled_operands, flops_an_element<5>),
          row<kernels::SquaredError, squared_error_reference>(squared_error_operands,
                                                              flops_an_element<4>),
          row<kernels::MeanLoss, mean_loss_reference>(mean_loss_operands,
                                                      [](const auto&) -> CheckedSize { return 1; }),
          row<kernels::AccumulateLoss, accumulate_loss_reference>(
              accumulate_loss_operands, [](const auto&) -> CheckedSize { return 1; }),
          row<kernels::ReportLoss, report_loss_reference>(report_loss_operands, extent::rows)};
}

}  // namespace stepgate
