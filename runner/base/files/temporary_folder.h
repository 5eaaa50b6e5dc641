// SPDX-License-Identifier: MIT
// A fresh folder for temporary files.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/files/open_file.h"

namespace stepgate {

// The names of all temporary folders begin so, as those of folders of others may.
inline constexpr std::string_view temporary_folder_prefix = "stepgate.";

// A folder that is removed with its content in the destructor. If the process is killed, the next
// process of the same user that makes such a folder removes it.
class TemporaryFolder {
 public:
  // Creates the folder, which only this user can enter, in `all`: the system's folder for temporary
  // files by default. Throws std::system_error.
  explicit TemporaryFolder(
      const std::filesystem::path& all = std::filesystem::temp_directory_path());
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  OpenFile lock_;
};

// Writes a new file into a temporary folder of another process of this user, which may be gone by
// now. The folder is not made, and nobody else can have made one in its place, since it must be
// this user's alone; a file or link that is there is left as it is. Returns whether all was
// written.
bool write_temporary_file(const std::filesystem::path&, std::string_view text);

}  // namespace stepgate
