// SPDX-License-Identifier: MIT
// Where device profiles and stored runs lie when --baselines does not say.
#pragma once

#include <filesystem>

namespace stepgate {

// The folder that the environment variable STEPGATE_BASELINES names, else baselines/ in the working
// directory, else the folder that is installed with this program, share/stepgate/baselines beside
// its bin/. Where none of them exists, the one in the working directory.
std::filesystem::path default_baselines();

}  // namespace stepgate
