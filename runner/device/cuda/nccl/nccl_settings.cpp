// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/nccl_settings.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <utility>

#include "device/cuda/nccl/nccl_profiler_api.h"

namespace stepgate {
namespace {

constexpr std::string_view prefix = "NCCL_";
constexpr const char* file_variable = "NCCL_CONF_FILE";

using Found = std::map<std::string, NcclSetting, std::less<>>;

// Adds a line "NAME=value" unless the name is there already.
void add(Found& found, std::string_view line, const std::string& file) {
  const std::size_t equals = line.find('=');
  if (!line.starts_with(prefix) || equals == std::string_view::npos) return;
  const std::string name(line.substr(0, equals));
  found.try_emplace(
      name, NcclSetting{.name = name, .value = std::string(line.substr(equals + 1)), .file = file});
}

// Returns the user's file, or the file that the variable names instead, and then the machine's
// file.
std::vector<std::filesystem::path> files_of_nccl() {
  std::vector<std::filesystem::path> files;
  const char* const named = std::getenv(file_variable);
  if (named != nullptr && *named != '\0') {
    files.emplace_back(named);
  } else if (const passwd* const user = ::getpwuid(::getuid())) {
    files.push_back(std::filesystem::path(user->pw_dir) / ".nccl.conf");
  }
  files.emplace_back("/etc/nccl.conf");
  return files;
}

}  // namespace

std::vector<NcclSetting> nccl_settings(const char* const* environment,
                                       std::span<const std::filesystem::path> files) {
  Found found;
  for (; *environment != nullptr; ++environment) add(found, *environment, "");
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) add(found, line, path.string());
  }
  std::vector<NcclSetting> settings;
  for (auto& [name, setting] : found) settings.push_back(std::move(setting));
  return settings;
}

std::vector<NcclSetting> nccl_settings() {
  return nccl_settings(environ, files_of_nccl());
}

std::optional<NcclSetting> nccl_setting(std::string_view name) {
  for (NcclSetting& setting : nccl_settings()) {
    if (setting.name == name) return std::move(setting);
  }
  return std::nullopt;
}

std::vector<DeviceKey> settings_of_communication() {
  std::vector<DeviceKey> settings;
  for (NcclSetting& setting : nccl_settings()) {
    const bool is_own = setting.name == nccl_profiler_api::plugin_variable &&
                        setting.value == nccl_profiler_api::the_program_itself;
    if (!is_own) settings.push_back({std::move(setting.name), std::move(setting.value)});
  }
  constexpr const char* queues = "CUDA_DEVICE_MAX_CONNECTIONS";
  if (const char* const given = std::getenv(queues)) settings.push_back({queues, given});
  return settings;
}

}  // namespace stepgate
