// SPDX-License-Identifier: MIT
// Lets one process at a time change the files of a folder.
#pragma once

#include <filesystem>

namespace stepgate {

// Held from construction to destruction, and given back by the system when the process is killed.
// It is a lock on the folder itself (flock), so nothing is left behind; a reader needs none, since
// files change whole or not at all. Makes the folder when it is missing, waits for whoever holds
// the lock, throws RequestError placed at the folder when it cannot be locked.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  int descriptor_ = -1;
};

}  // namespace stepgate
