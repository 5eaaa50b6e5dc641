// SPDX-License-Identifier: MIT
// Finds baseline files, and adds runs to them so that nothing is ever lost.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "judge/stored/baseline.h"

namespace stepgate {

// The path <baselines>/<folder_of_baselines>/<scenario>.toml.
std::filesystem::path baseline_path(const std::filesystem::path& baselines, const DeviceIdentity&,
                                    const std::string& scenario);

// The folders of every device in a folder of baselines, those of simulated ones last. Throws
// RequestError where a folder cannot be read.
std::vector<std::filesystem::path> folders_of_devices(const std::filesystem::path& baselines);

// Returns nullopt when there is no such file. Throws RequestError like read_baseline.
std::optional<Baseline> read_baseline_if_any(const std::filesystem::path&,
                                             const std::string& scenario,
                                             std::string_view kind = "baseline");

// Adds the run to the file, creating it if needed, and returns the new content. Several processes
// may append at once, and each run is added; a killed process has added its run or has not. Throws
// RequestError and leaves the file unchanged when it is damaged, already has the same run, or would
// exceed the readable size.
Baseline append_run(const std::filesystem::path&, const std::string& scenario, const StoredRun&);

}  // namespace stepgate
