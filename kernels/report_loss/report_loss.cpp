// SPDX-License-Identifier: MIT
// The host side of report_loss: operands, work and the reference. Meaning and shapes:
// report_loss.h.
#include "kernels/report_loss/report_loss.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

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

// --- work ----------------------------------------------------------------------------------------

CheckedSize report_loss_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.rows;
}

// --- reference -----------------------------------------------------------------------------------

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

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> report_loss_kernels() {
  return {{kernels::ReportLoss::name, report_loss_operands, report_loss_flops,
           report_loss_reference, in_cuda_builds<prepare_report_loss>()}};
}

}  // namespace stepgate
