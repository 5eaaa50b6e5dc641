// SPDX-License-Identifier: MIT
// A process holds a lock on the folder itself, which the system releases when the process ends. So
// there is no moment at which a folder of a killed process cannot be told from others.
#include "base/files/temporary_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/files/leftovers.h"
#include "base/files/write_file.h"

namespace stepgate {
namespace {

constexpr mode_t for_its_owner = 0700;

OpenFile open_folder(const std::filesystem::path& folder) {
  return OpenFile(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

[[noreturn]] void refuse_folder() {
  throw std::system_error(errno, std::generic_category(), "make a temporary folder");
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::filesystem::path& all) {
  remove_leftovers(all, temporary_folder_prefix, S_IFDIR);
  while (true) {
    path_ = all / (std::string(temporary_folder_prefix) + random_mark());
    if (::mkdir(path_.c_str(), for_its_owner) != 0) {
      if (errno == EEXIST) continue;
      refuse_folder();
    }
    lock_ = open_folder(path_);
    if (lock_.descriptor() < 0 && errno != ENOENT) {
      const int reason = errno;
      ::rmdir(path_.c_str());
      errno = reason;
      refuse_folder();
    }
    // Another process may remove the folder before it is locked; then the loop makes a new one. On
    // file systems without locks no process removes folders.
    (void)::flock(lock_.descriptor(), LOCK_EX);
    if (lock_.is_at(path_)) return;
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code left_behind;
  std::filesystem::remove_all(path_, left_behind);
}

bool write_temporary_file(const std::filesystem::path& file, std::string_view text) {
  const OpenFile folder = open_folder(file.parent_path());
  struct stat status {};
  if (folder.descriptor() < 0 || ::fstat(folder.descriptor(), &status) != 0) return false;
  const bool is_ours = status.st_uid == ::geteuid() && (status.st_mode & 0777) == for_its_owner;
  if (!is_ours) return false;
  const OpenFile made(::openat(folder.descriptor(), file.filename().c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  return made.descriptor() >= 0 && write_all(made.descriptor(), text);
}

}  // namespace stepgate
