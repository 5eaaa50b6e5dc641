// SPDX-License-Identifier: MIT
// The folders of device profiles and of stored runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stepgate {

// The environment variable with the folder of profiles that takes the place of the installed one. A
// gate sets it, so that BASE and HEAD are simulated with the same profiles.
inline constexpr const char* profiles_variable = "STEPGATE_PROFILES";

// The environment variable with the user's folder, and where that is when nothing names another.
inline constexpr const char* baselines_variable = "STEPGATE_BASELINES";
inline constexpr const char* default_baselines_folder = "baselines";

// Profiles lie in <folder>/<profile>/device.toml, stored runs in <users>/<device>/<scenario>.toml.
struct Baselines {
  std::filesystem::path users;    // stored runs are read and written here alone
  std::filesystem::path package;  // installed with this program; empty: it is not installed

  // The folders of profiles, in order: a profile of the user's folder wins.
  std::vector<std::filesystem::path> profile_folders() const;
  // Whether the user's folder is the installed one, in which no run is stored.
  bool users_is_package() const;
};

// The user's folder is the one in the environment, else the default one in the working directory,
// which need not exist. The installed one is share/stepgate/baselines beside the bin/ of this
// program.
Baselines default_baselines();

}  // namespace stepgate
