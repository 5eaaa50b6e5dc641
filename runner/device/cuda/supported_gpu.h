// SPDX-License-Identifier: MIT
// Decides which GPUs this build of the program supports. Queries no GPU.
#pragma once

#include <optional>
#include <string>

namespace stepgate {

struct FoundGpu {
  std::string name;               // "NVIDIA L4"
  double compute_capability = 0;  // 8.9
  bool has_code = true;           // the build has code for it, or PTX that its driver compiles
};

// The architectures that this build has code for, as given to CMake: "80-real 90". Empty without
// CUDA.
std::string built_architectures();

// Returns why the program cannot run on that GPU, with a hint; nullopt where it can.
std::optional<std::string> reason_against(const FoundGpu&, const std::string& architectures);

}  // namespace stepgate
