// SPDX-License-Identifier: MIT
#include "scenario/read/bases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <system_error>

namespace stepgate {
namespace {

// Resolves the symbolic links of the part of the path that exists.
std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  auto all = std::filesystem::weakly_canonical(absolute, error);
  return error ? absolute.lexically_normal() : all;
}

bool lies_in(const std::filesystem::path& file, const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
         folder.end();
}

}  // namespace

std::filesystem::path root_of_bases(const std::filesystem::path& scenario_file) {
  const std::filesystem::path own = resolved(scenario_file).parent_path();
  for (auto folder = own;; folder = folder.parent_path()) {
    std::error_code error;
    if (std::filesystem::exists(folder / ".git", error)) return folder;
    if (folder == folder.parent_path()) return own;
  }
}

BaseFolders::BaseFolders(const std::filesystem::path& scenario_file)
    : folders_{root_of_bases(scenario_file)} {
  const char* more = std::getenv(bases_variable);
  std::istringstream text(more == nullptr ? "" : more);
  for (std::string folder; std::getline(text, folder, ':');) {
    // A path "a/" has an empty file name and "a" has not. With "x" appended, parent_path() returns
    // "a" for either.
    if (!folder.empty())
      folders_.push_back(resolved(std::filesystem::path(folder) / "x").parent_path());
  }
}

std::optional<Diagnostic> BaseFolders::reason_against(const std::string& base) const {
  const std::filesystem::path file = resolved(base);
  const bool allowed = std::ranges::any_of(
      folders_, [&](const std::filesystem::path& folder) { return lies_in(file, folder); });
  if (allowed) return std::nullopt;
  return Diagnostic{
      {base},
      fmt::format("{} lies outside {}", file.generic_string(), folders_.front().generic_string()),
      fmt::format("move it there, or allow its folder: {}={}", bases_variable,
                  file.parent_path().generic_string())};
}

}  // namespace stepgate
