// SPDX-License-Identifier: MIT
// Determines which of several GPUs `--device` names. Queries no GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/cuda/cuda_failure.h"

namespace stepgate {

// The index in "cuda" (0) or "cuda:3" (3); nullopt for a text that names no GPU. Throws
// RequestError for "cuda:" without a number.
std::optional<int> gpu_index_in(std::string_view spec);

// Writes "cuda" for 0, "cuda:3" for 3.
std::string spec_of_gpu(int index);

// Returns why there is no GPU of that index among `visible` GPUs; nullopt where there is one.
std::optional<NoGpu> reason_against_index(int index, int visible);

}  // namespace stepgate
