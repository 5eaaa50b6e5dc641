// SPDX-License-Identifier: MIT
// A fresh folder for files that nobody wants to keep.
#pragma once

#include <filesystem>

#include "base/files/open_file.h"

namespace stepgate {

// Gone with everything in it at the end; that of a process that was killed, when the next one of
// the same user makes one.
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
  OpenFile lock_;
};

}  // namespace stepgate
