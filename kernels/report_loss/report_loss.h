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

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace report_loss_scalar {
constexpr std::size_t capacity = 0;
}

Kernel report_loss_kernel();

// Only in CUDA builds.
Launch prepare_report_loss(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
