// SPDX-License-Identifier: MIT
// Operands, work and references of the family on the host; the header has meaning and shapes.
#include "kernels/loss/loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr KernelOperand cross_entropy_operands[] = {
    {"logits", Access::read, extent::elements},
    {"labels", Access::read, extent::rows, OperandFormat::label},
    {.name = "gradient", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"row_losses", Access::write, extent::rows, OperandFormat::single},
};

constexpr KernelOperand scaled_operands[] = {
    {"logits", Access::read, extent::elements},
    {"labels", Access::read, extent::rows, OperandFormat::label},
    {"scale", Access::read, extent::one, OperandFormat::single},
    {.name = "gradient", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    {"row_losses", Access::write, extent::rows, OperandFormat::single},
};

// maximum, subtract, exponential, sum, scale
CheckedSize cross_entropy_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 5 * elements_of(shape);
}

void differentiate(const KernelCall& call, double scale, void* gradient, float* row_losses) {
  const std::int64_t rows = call.shape.rows;
  const std::int64_t columns = call.shape.columns;
  const std::int64_t classes = classes_of(call.shape, call.attributes);
  const auto* labels = static_cast<const std::int32_t*>(call.buffers[1]);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t label = labels[row];
    if (label < 0) {
      row_losses[row] = 0;
      for (std::int64_t c = 0; c < columns; ++c)
        set_number(gradient, call.dtype, row * columns + c, 0);
      continue;
    }
    // A copy, since the gradient may be written over the logits.
    std::vector<double> logits(static_cast<std::size_t>(classes));
    for (std::int64_t c = 0; c < classes; ++c) {
      logits[c] = number_at(call.buffers[0], call.dtype, row * columns + c);
    }
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - largest);
    row_losses[row] = static_cast<float>(std::log(sum) + largest - logits[label]);
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

void cross_entropy_reference(const KernelCall& call) {
  differentiate(call, 1, call.buffers[2], static_cast<float*>(call.buffers[3]));
}

void scaled_reference(const KernelCall& call) {
  const float scale = *static_cast<const float*>(call.buffers[2]);
  differentiate(call, scale, call.buffers[3], static_cast<float*>(call.buffers[4]));
}

constexpr KernelOperand mean_loss_operands[] = {
    {"sum", Access::read_write, extent::one, OperandFormat::single},
    {"mean", Access::write, extent::one, OperandFormat::single},
};

CheckedSize mean_loss_flops(const CheckedShape&, const KernelAttributes&) {
  return 1;
}

void mean_loss_reference(const KernelCall& call) {
  auto* sum = static_cast<float*>(call.buffers[0]);
  *static_cast<float*>(call.buffers[1]) =
      static_cast<float>(*sum / static_cast<double>(call.attributes.as<kernels::MeanLoss>().count));
  *sum = 0;
}

constexpr KernelOperand accumulate_loss_operands[] = {
    {"loss", Access::read, extent::one, OperandFormat::single},
    {"sum", Access::read_write, extent::one, OperandFormat::single},
};

CheckedSize accumulate_loss_flops(const CheckedShape&, const KernelAttributes&) {
  return 1;
}

void accumulate_loss_reference(const KernelCall& call) {
  *static_cast<float*>(call.buffers[1]) += *static_cast<const float*>(call.buffers[0]);
}

CheckedSize capacity(const CheckedShape&, DType, const KernelAttributes& attributes) {
  return attributes.as<kernels::ReportLoss>().capacity;
}

CheckedSize two_a_slot(const CheckedShape&, DType, const KernelAttributes& attributes) {
  return 2 * attributes.as<kernels::ReportLoss>().capacity;
}

CheckedSize one_pair(const CheckedShape&, DType, const KernelAttributes&) {
  return 2;
}

constexpr KernelOperand report_loss_operands[] = {
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
     .elements = two_a_slot,
     .format = OperandFormat::count,
     .touched = one_pair,
     .keeps_rest = true},
};

CheckedSize report_loss_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.rows;
}

void report_loss_reference(const KernelCall& call) {
  const auto* row_losses = static_cast<const float*>(call.buffers[0]);
  auto* counter = static_cast<std::uint64_t*>(call.buffers[4]);
  double sum = 0;
  for (std::int64_t row = 0; row < call.shape.rows; ++row) sum += row_losses[row];
  const auto loss =
      static_cast<float>(sum / static_cast<double>(rows_of_loss(call.shape, call.attributes)));
  const auto capacity =
      static_cast<std::uint64_t>(call.attributes.as<kernels::ReportLoss>().capacity);
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
  return {{kernels::CrossEntropy::name, cross_entropy_operands, cross_entropy_flops,
           cross_entropy_reference, in_cuda_builds<prepare_cross_entropy>()},
          {kernels::ScaledCrossEntropy::name, scaled_operands, cross_entropy_flops,
           scaled_reference, in_cuda_builds<prepare_scaled_cross_entropy>()},
          {kernels::MeanLoss::name, mean_loss_operands, mean_loss_flops, mean_loss_reference,
           in_cuda_builds<prepare_mean_loss>()},
          {kernels::AccumulateLoss::name, accumulate_loss_operands, accumulate_loss_flops,
           accumulate_loss_reference, in_cuda_builds<prepare_accumulate_loss>()},
          {kernels::ReportLoss::name, report_loss_operands, report_loss_flops,
           report_loss_reference, in_cuda_builds<prepare_report_loss>()}};
}

}  // namespace stepgate
