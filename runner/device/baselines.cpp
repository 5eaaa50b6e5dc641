// SPDX-License-Identifier: MIT
#include "device/baselines.h"

#include <cstdlib>
#include <system_error>

#include "base/process/run_program.h"

namespace stepgate {
namespace {

std::filesystem::path in_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::filesystem::path installed_profiles() {
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink(own_program_link, unknown);
  std::filesystem::path folder =
      program.parent_path().parent_path() / "share" / "stepgate" / "baselines";
  return std::filesystem::is_directory(folder, unknown) ? folder : std::filesystem::path();
}

}  // namespace

std::vector<std::filesystem::path> Baselines::profile_folders() const {
  std::vector<std::filesystem::path> folders{users};
  if (!package.empty() && !users_is_package()) folders.push_back(package);
  return folders;
}

bool Baselines::users_is_package() const {
  std::error_code missing;
  return std::filesystem::equivalent(users, package, missing);
}

Baselines default_baselines() {
  std::filesystem::path users = in_environment(baselines_variable);
  std::filesystem::path package = in_environment(profiles_variable);
  return {.users = users.empty() ? default_baselines_folder : users,
          .package = package.empty() ? installed_profiles() : package};
}

}  // namespace stepgate
