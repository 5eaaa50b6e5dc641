// SPDX-License-Identifier: MIT
// Settings of NCCL outside of its calls: environment variables, and files from which NCCL reads
// more variables.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace stepgate {

struct NcclSetting {
  std::string name;  // "NCCL_ALGO"
  std::string value;
  std::string file = {};  // that sets it; empty: the environment does
  bool operator==(const NcclSetting&) const = default;
};

// Returns NCCL's settings by name, with NCCL's precedence: the environment first, then the files in
// this order.
std::vector<NcclSetting> nccl_settings(const char* const* environment,
                                       std::span<const std::filesystem::path> files);
// Returns the settings of this process.
std::vector<NcclSetting> nccl_settings();
std::optional<NcclSetting> nccl_setting(std::string_view name);

// Returns all settings that affect a step of several ranks, including CUDA's variable for shared
// queues, but not NCCL's version. The plugin of this program itself is left out.
std::vector<DeviceKey> settings_of_communication();

}  // namespace stepgate
