// SPDX-License-Identifier: MIT
#include "line/baselines_folder.h"

#include <cstdlib>
#include <system_error>

namespace stepgate {
namespace {

bool is_folder(const std::filesystem::path& path) {
  std::error_code unreadable;
  return std::filesystem::is_directory(path, unreadable);
}

}  // namespace

std::filesystem::path default_baselines() {
  const char* named = std::getenv("STEPGATE_BASELINES");
  if (named != nullptr && *named != 0) return named;
  std::filesystem::path here = "baselines";
  if (is_folder(here)) return here;
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  std::filesystem::path installed =
      program.parent_path().parent_path() / "share" / "stepgate" / "baselines";
  return is_folder(installed) ? installed : here;
}

}  // namespace stepgate
