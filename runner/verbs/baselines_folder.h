// SPDX-License-Identifier: MIT
// Where device profiles and stored runs lie when --baselines does not say.
#pragma once

#include <filesystem>

namespace stepgate {

// The folder in the environment variable STEPGATE_BASELINES, else baselines/ in the working
// directory, else the folder installed with this program, share/stepgate/baselines beside its bin/.
// If none exists, returns the one in the working directory.
std::filesystem::path default_baselines();

}  // namespace stepgate
