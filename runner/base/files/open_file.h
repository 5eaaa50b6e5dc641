// SPDX-License-Identifier: MIT
// A descriptor that is closed at the end, and locks on it (POSIX).
#pragma once

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace stepgate {

class OpenFile {
 public:
  explicit OpenFile(int descriptor = -1) : descriptor_(descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OpenFile() { (void)close(); }

  int descriptor() const { return descriptor_; }

  // Closes the file. Some file systems report only here that the disk is full.
  int close() { return descriptor_ < 0 ? 0 : ::close(std::exchange(descriptor_, -1)); }

  // Whether the path still names this file. After a wait for a lock, the file may have been
  // deleted.
  bool is_at(const std::filesystem::path& path) const {
    struct stat own {};
    struct stat there {};
    return ::fstat(descriptor_, &own) == 0 && ::lstat(path.c_str(), &there) == 0 &&
           own.st_dev == there.st_dev && own.st_ino == there.st_ino;
  }

 private:
  int descriptor_;
};

}  // namespace stepgate
