// SPDX-License-Identifier: MIT
// Where baselines lie, and how a run is added to one so that nothing is ever lost.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "judge/stored/baseline.h"

namespace stepgate {

// <baselines>/<folder_of_baselines>/<scenario>.toml
std::filesystem::path baseline_path(const std::filesystem::path& baselines, const DeviceIdentity&,
                                    const std::string& scenario);

// Nothing when there is no such file. Throws RequestError like read_baseline.
std::optional<Baseline> read_baseline_if_any(const std::filesystem::path&,
                                             const std::string& scenario,
                                             std::string_view kind = "baseline");

// Adds the run to the file, which is made if it is missing, and returns what then lies there.
// Several processes that do so at once each add their run; one that is killed has added its run or
// has not. Throws RequestError and leaves the file as it is when it is damaged, holds the same run
// already, or would grow beyond what can be read.
Baseline append_run(const std::filesystem::path&, const std::string& scenario, const StoredRun&);

}  // namespace stepgate
