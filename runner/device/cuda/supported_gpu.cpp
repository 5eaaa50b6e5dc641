// SPDX-License-Identifier: MIT
#include "device/cuda/supported_gpu.h"

#include <fmt/format.h>

#include <cmath>

#ifndef STEPGATE_CUDA_ARCHITECTURES
#define STEPGATE_CUDA_ARCHITECTURES ""
#endif

namespace stepgate {
namespace {

// The limit is the same in cmake/architectures.cmake, which refuses to build for less.
constexpr double least_compute_capability_of_kernels = 8.0;

}  // namespace

std::string built_architectures() {
  return STEPGATE_CUDA_ARCHITECTURES;
}

std::optional<std::string> reason_against(const FoundGpu& gpu, const std::string& architectures) {
  if (gpu.compute_capability < least_compute_capability_of_kernels) {
    return fmt::format(
        "{} has compute capability {:.1f}; stepgate needs 8.0 (A100, RTX 30 series) or newer",
        gpu.name, gpu.compute_capability);
  }
  if (gpu.has_code) return std::nullopt;
  return fmt::format(
      "this build has code for '{}', none for {}, compute capability {:.1f}; build with "
      "-DCMAKE_CUDA_ARCHITECTURES={}",
      architectures, gpu.name, gpu.compute_capability, std::lround(10 * gpu.compute_capability));
}

}  // namespace stepgate
