// SPDX-License-Identifier: MIT
#include "base/process/attached_tool.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace stepgate {
namespace {

// Variables that load a tool into CUDA or NVTX, and the one of NVIDIA's launcher (ncu). ncu also
// holds back every process started by its first one until it has the GPU to itself.
constexpr std::array marks{"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NV_TPS_LAUNCH_TOKEN"};

}  // namespace

bool is_of_a_tool(std::string_view variable) {
  return std::ranges::any_of(marks, [&](const char* mark) { return variable == mark; });
}

std::optional<std::string> attached_tool() {
  for (const char* mark : marks) {
    if (std::getenv(mark)) return mark;
  }
  return std::nullopt;
}

}  // namespace stepgate
