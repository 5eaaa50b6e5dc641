// SPDX-License-Identifier: MIT
// Keeps one multiprocessor busy for a time by the device's clock, and counts that it did.
//   shape     unused
//   operands  word (uint32 [1]): word += 1, so that the loop is not optimised away
// The reference counts and does not spin.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Spin {
  static constexpr std::string_view name = "spin";
  struct Attributes {
    double microseconds = 0;
  };
};

}  // namespace kernels

std::vector<Kernel> spin_kernels();

// Only in CUDA builds.
Launch prepare_spin(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
