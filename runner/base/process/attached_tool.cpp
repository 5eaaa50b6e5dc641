// SPDX-License-Identifier: MIT
#include "base/process/attached_tool.h"

#include <array>
#include <cstdlib>

namespace stepgate {

std::optional<std::string> attached_tool() {
  // Variables that load a tool into CUDA or NVTX, and the one of NVIDIA's launcher (ncu). ncu also
  // holds back every process started by its first one until it has the GPU to itself.
  constexpr std::array marks{"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
                             "NV_TPS_LAUNCH_TOKEN"};
  for (const char* mark : marks) {
    if (std::getenv(mark)) return mark;
  }
  return std::nullopt;
}

}  // namespace stepgate
