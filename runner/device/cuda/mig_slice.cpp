// SPDX-License-Identifier: MIT
#include "device/cuda/mig_slice.h"

namespace stepgate {

std::optional<std::string> mig_slice_of(std::string_view gpu) {
  constexpr std::string_view mark = " MIG ";
  const auto at = gpu.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return std::string(gpu.substr(at + mark.size()));
}

std::string gpu_in_words(const std::string& gpu) {
  if (!mig_slice_of(gpu)) return gpu;
  return gpu +
         ", a MIG slice: its memory, kernels and measured profile are its own; clocks, power and "
         "temperature are those of the whole GPU, and what other slices do to them is not seen";
}

}  // namespace stepgate
