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

// How long a process waits for a lock, and how long it waits silently.
struct LockPatience {
  std::chrono::milliseconds silent{500};                     // short waits are not reported
  std::chrono::milliseconds most{std::chrono::seconds(60)};  // for one and the same holder
  std::ostream* words = &std::cerr;
};

// Held from construction to destruction, and given back by the system when the process is killed.
// It is an flock on a file in the folder. Only users who may write in the folder can open that
// file. A reader needs no lock, since files are replaced atomically. The holder removes the file.
// Makes a missing folder; waits for another holder with a message and a timeout. Throws
// RequestError placed at the folder when it cannot be locked, Interrupted when a signal comes
// first.
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
