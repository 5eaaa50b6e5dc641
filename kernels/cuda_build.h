// SPDX-License-Identifier: MIT
// Lets a kernel's row name its CUDA launcher in every build: null where the build has no CUDA.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

using Prepare = Launch (*)(const KernelShape&, DType, const KernelAttributes&,
                           const LaunchContext&);

template <auto launcher>
constexpr decltype(launcher) in_cuda_builds() {
#ifdef STEPGATE_WITH_CUDA
  return launcher;
#else
  return nullptr;
#endif
}

}  // namespace stepgate
