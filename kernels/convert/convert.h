// SPDX-License-Identifier: MIT
// Copies numbers from the model's storage to fp32 (widen) and back, rounded to nearest (narrow): as
// gradients are made larger for a collective that adds them in fp32.
//   shape     columns numbers
//   widen     numbers ([columns]), wide (fp32 [columns])
//   narrow    wide (fp32 [columns]), numbers ([columns])
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Widen {
  static constexpr std::string_view name = "widen";
  using Attributes = NoAttributes;
};

struct Narrow {
  static constexpr std::string_view name = "narrow";
  using Attributes = NoAttributes;
};

}  // namespace kernels

std::vector<Kernel> convert_kernels();

// Only in CUDA builds.
Launch prepare_widen(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);
Launch prepare_narrow(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
