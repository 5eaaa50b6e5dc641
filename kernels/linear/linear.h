// SPDX-License-Identifier: MIT
// A linear layer, row-major, with its weight as PyTorch stores it: y = x W^T + bias.
//   shape     rows = samples M; columns = outputs N; depth = inputs K
//   operands  x ([M][K]), weight ([N][K]), bias ([N]), y ([M][N])
// In CUDA builds operands must be aligned to 16 bytes.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Linear {
  static constexpr std::string_view name = "linear";
  using Attributes = NoAttributes;
};

}  // namespace kernels

std::vector<Kernel> linear_kernels();

// Only in CUDA builds.
Launch prepare_linear(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
