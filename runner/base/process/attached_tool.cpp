// SPDX-License-Identifier: MIT
#include "base/process/attached_tool.h"

#include <array>
#include <cstdlib>

namespace stepgate {

std::optional<std::string> attached_tool() {
  // Variables of tools that CUDA or NVTX loads, and of NVIDIA's launcher (ncu), which also holds
  // every process that the first one starts until it has the GPU to itself.
  constexpr std::array marks{"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
                             "NV_TPS_LAUNCH_TOKEN"};
  for (const char* mark : marks) {
    if (std::getenv(mark)) return mark;
  }
  return std::nullopt;
}

}  // namespace stepgate
