// SPDX-License-Identifier: MIT
// A GPU that is a slice of a larger one (MIG), recognised by its name. Queries no GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepgate {

// Returns the MIG slice in CUDA's name of a GPU: "1g.10gb" for "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
// nullopt for a whole GPU.
std::optional<std::string> mig_slice_of(std::string_view gpu);

// Returns the name of the GPU; for a slice, also what it shares with the rest of the GPU.
std::string gpu_in_words(const std::string& gpu);

}  // namespace stepgate
