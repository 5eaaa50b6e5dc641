// SPDX-License-Identifier: MIT
// A fresh folder for temporary files.
#pragma once

#include <filesystem>

#include "base/files/open_file.h"

namespace stepgate {

// A folder that is removed with its content in the destructor. If the process is killed, the next
// process of the same user that makes such a folder removes it.
class TemporaryFolder {
 public:
  // Creates the folder in the system's folder for temporary files. Throws std::system_error.
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
