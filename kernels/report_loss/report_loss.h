// SPDX-License-Identifier: MIT
// Writes down a step's loss, the device's clock and the cycles of a multiprocessor, and counts the
// step.
//   shape     rows = row losses
//   operands  row_losses (fp32 [rows]), loss (fp32 [1]), history (fp32 [capacity]),
//             stamps (uint64 [capacity], nanoseconds), counter (uint64 [1]),
//             cycles (uint64 [capacity, 2]: the cycle counter of the multiprocessor that ran this,
//             and that multiprocessor's number; counters of different ones do not compare)
// loss = sum(row_losses) / rows, or over as many rows as it is told: those that are no padding;
// history, stamps and cycles get theirs at counter % capacity; counter += 1. The host has no device
// clock: the reference writes stamp 0 and cycles 0, 0.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct ReportLoss {
  static constexpr std::string_view name = "report_loss";
  struct Attributes {
    std::int64_t capacity = 1;
    std::int64_t rows_of_mean = 0;  // 0: those of the launch
  };
};

}  // namespace kernels

constexpr std::int64_t rows_of_loss(const KernelShape& shape, const KernelAttributes& attributes) {
  const std::int64_t rows = attributes.as<kernels::ReportLoss>().rows_of_mean;
  return rows > 0 ? rows : shape.rows;
}

std::vector<Kernel> report_loss_kernels();

// Only in CUDA builds.
Launch prepare_report_loss(const KernelShape&, DType, const KernelAttributes&,
                           const LaunchContext&);

}  // namespace stepgate
