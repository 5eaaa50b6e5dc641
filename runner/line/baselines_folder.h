// SPDX-License-Identifier: MIT
// The default folder of device profiles and stored runs, without --baselines.
#pragma once

#include <filesystem>

namespace stepgate {

// The folder in the environment variable STEPGATE_BASELINES, else baselines/ in the working
// directory, else the folder installed with this program, share/stepgate/baselines beside its bin/.
// If none exists, returns the one in the working directory.
std::filesystem::path default_baselines();

}  // namespace stepgate
