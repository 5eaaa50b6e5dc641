// SPDX-License-Identifier: MIT
// Which GPU of several `--device` names. Asks no GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/cuda/cuda_failure.h"

namespace stepgate {

// 0 of "cuda", 3 of "cuda:3"; nothing of what names no GPU. Throws RequestError for "cuda:" with
// something else than a number behind it.
std::optional<int> gpu_index_in(std::string_view spec);

// "cuda" of 0, "cuda:3" of 3.
std::string spec_of_gpu(int index);

// Why there is no GPU of that index where so many are visible; nothing where there is one.
std::optional<NoGpu> reason_against_index(int index, int visible);

}  // namespace stepgate
