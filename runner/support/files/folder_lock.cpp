// SPDX-License-Identifier: MIT
#include "support/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "support/text/diagnostic.h"

namespace stepgate {
namespace {

[[noreturn]] void refuse_to_lock(const std::filesystem::path& folder, const std::string& reason) {
  throw RequestError(Diagnostic{Place{folder.generic_string(), 0, 0}, "cannot be locked: " + reason,
                                "check its permissions, or name another folder"});
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) refuse_to_lock(folder, error.message());
  descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) refuse_to_lock(folder, std::strerror(errno));
  while (::flock(descriptor_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    const std::string reason = std::strerror(errno);
    ::close(descriptor_);
    refuse_to_lock(folder, reason);
  }
}

FolderLock::~FolderLock() {
  ::close(descriptor_);
}

}  // namespace stepgate
