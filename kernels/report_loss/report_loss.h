// SPDX-License-Identifier: MIT
// Writes down a step's loss, the device's clock and the cycles of a multiprocessor, and counts the
// step.
//   shape     rows = row losses
//   operands  row_losses (fp32 [rows]), loss (fp32 [1]), history (fp32 [capacity]),
//             stamps (uint64 [capacity], nanoseconds), counter (uint64 [1]),
//             cycles (uint64 [capacity, 2]: the cycle counter of the multiprocessor that ran this,
//             and that multiprocessor's number; counters of different ones do not compare)
// loss = mean(row_losses); history, stamps and cycles get theirs at counter % capacity;
// counter += 1. The host has no device clock: the reference writes stamp 0 and cycles 0, 0.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct ReportLoss {
  static constexpr std::string_view name = "report_loss";
  struct Attributes {
    std::int64_t capacity = 1;
  };
};

}  // namespace kernels

std::vector<Kernel> report_loss_kernels();

// Only in CUDA builds.
Launch prepare_report_loss(const KernelShape&, DType, const KernelAttributes&,
                           const LaunchContext&);

}  // namespace stepgate
