// SPDX-License-Identifier: MIT
// Lets one process at a time change the files of a folder.
#pragma once

#include <chrono>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include "base/files/open_file.h"

namespace stepgate {

inline constexpr std::string_view lock_file_name = ".stepgate.lock";

// The time to wait for a lock, and how much of that passes without a message.
struct LockPatience {
  std::chrono::milliseconds silent{500};                     // short waits are not reported
  std::chrono::milliseconds most{std::chrono::seconds(60)};  // as long as the holder stays the same
  std::ostream* words = &std::cerr;
  std::string work = {};  // that is done meanwhile, in a word for those who wait: "l.ledger"
};

// An exclusive lock on a folder, held from construction to destruction. The system releases it when
// the process is killed. It is an flock on a file in the folder that only users who may write in
// the folder can open. A reader needs no lock, since files are replaced atomically. The holder
// removes the file. The constructor creates a missing folder and waits for another holder, with a
// message and a timeout. Throws RequestError placed at the folder when it cannot be locked,
// Interrupted when a signal comes first.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder, const LockPatience& = {});
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  std::filesystem::path path_;
  OpenFile file_;
};

}  // namespace stepgate
