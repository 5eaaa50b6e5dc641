// SPDX-License-Identifier: MIT
// A fresh folder for files that nobody wants to keep.
#pragma once

#include <filesystem>

namespace stepgate {

// Gone with everything in it at the end.
class TemporaryFolder {
 public:
  // Where the system keeps such folders. Throws std::system_error.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace stepgate
