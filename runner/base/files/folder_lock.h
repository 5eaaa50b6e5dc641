// SPDX-License-Identifier: MIT
// Lets one process at a time change the files of a folder.
#pragma once

#include <chrono>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "base/files/open_file.h"

namespace stepgate {

inline constexpr std::string_view lock_file_name = ".stepgate.lock";

// The patience of whoever waits for a lock.
struct LockPatience {
  std::chrono::milliseconds silent{500};                     // short waits are nobody's business
  std::chrono::milliseconds most{std::chrono::seconds(60)};  // for one and the same holder
  std::ostream* words = &std::cerr;
};

// Held from construction to destruction, and given back by the system when the process is killed.
// It is a lock (flock) on a file in the folder that whoever may write there may open, and nobody
// else; a reader needs none, since files change whole or not at all. Its holder takes the file
// away. Makes the folder when it is missing and waits for whoever holds the lock, not without
// saying so and not for ever. Throws RequestError placed at the folder when it cannot be locked,
// Interrupted when a signal comes first.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder, LockPatience = {});
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  std::filesystem::path path_;
  OpenFile file_;
};

}  // namespace stepgate
