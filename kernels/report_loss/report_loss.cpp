// SPDX-License-Identifier: MIT
// The host side of report_loss: operands, work and the reference. Meaning and shapes:
// report_loss.h.
#include "kernels/report_loss/report_loss.h"

#include "kernels/cuda_build.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand report_loss_operands[] = {
    {"row_losses", Access::read},    {"loss", Access::write},
    {"history", Access::read_write}, {"stamps", Access::read_write},
    {"counter", Access::read_write}, {"cycles", Access::read_write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork report_loss_work(const KernelShape& shape, DType, const KernelScalars&) {
  return {
      .bytes_read = shape.rows * 4 + 8, .bytes_written = 4 + 4 + 8 + 8 + 16, .flops = shape.rows};
}

// --- reference -----------------------------------------------------------------------------------

void report_loss_reference(const KernelCall& call) {
  const auto* row_losses = static_cast<const float*>(call.buffers[0]);
  auto* counter = static_cast<std::uint64_t*>(call.buffers[4]);
  double sum = 0;
  for (std::int64_t row = 0; row < call.shape.rows; ++row) sum += row_losses[row];
  const auto loss = static_cast<float>(sum / static_cast<double>(call.shape.rows));
  const auto capacity = static_cast<std::uint64_t>(call.scalars[report_loss_scalar::capacity]);
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

Kernel report_loss_kernel() {
  return {"report_loss", report_loss_operands, report_loss_work, report_loss_reference,
          in_cuda_builds<prepare_report_loss>()};
}

}  // namespace stepgate
