// SPDX-License-Identifier: MIT
// Decides which files a scenario may extend. A scenario may come from an untrusted pull request,
// and messages about a base show its keys and lines. So a base must be in the same repository.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/text/diagnostic.h"

namespace stepgate {

// The environment variable with further folders that scenarios may extend from, separated by ':'.
inline constexpr const char* bases_variable = "STEPGATE_BASES";

// The nearest parent folder with a `.git`; without one, the file's own folder.
std::filesystem::path root_of_bases(const std::filesystem::path& scenario_file);

class BaseFolders {
 public:
  // The folders for a scenario in this file, and those of the environment variable.
  explicit BaseFolders(const std::filesystem::path& scenario_file);

  // Why this file may not be extended; nullopt if it may. Follows symbolic links first.
  std::optional<Diagnostic> reason_against(const std::string& base) const;

 private:
  std::vector<std::filesystem::path> folders_;
};

}  // namespace stepgate
