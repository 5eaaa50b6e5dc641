// SPDX-License-Identifier: MIT
// Keeps one multiprocessor busy for a time by the device's clock, and counts that it did.
//   shape     unused
//   operands  word (uint32 [1]): word += 1, so that the loop is not optimised away
// The reference counts and does not spin.
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace stepgate {

// Indices into KernelScalars.
namespace spin_scalar {
constexpr std::size_t microseconds = 0;
}

Kernel spin_kernel();

// Only in CUDA builds.
Launch prepare_spin(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
