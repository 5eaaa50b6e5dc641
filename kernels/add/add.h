// SPDX-License-Identifier: MIT
// sum = x + branch, element by element; sum may be x.
//   shape     rows, columns (only their product counts)
//   operands  x, branch, sum
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Add {
  static constexpr std::string_view name = "add";
  using Attributes = NoAttributes;
};

}  // namespace kernels

std::vector<Kernel> add_kernels();

// Only in CUDA builds.
Launch prepare_add(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
