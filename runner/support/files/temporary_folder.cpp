// SPDX-License-Identifier: MIT
// Whose process lives holds a lock on its folder, which the system gives back with the process.
#include "support/files/temporary_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace stepgate {
namespace {

constexpr std::string_view folder_prefix = "stepgate.";
constexpr std::size_t folder_letters = 6;

OpenFile open_folder(const std::filesystem::path& path) {
  return OpenFile(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Those of processes that were killed. What another user left is not ours to remove.
void remove_left_folders(const std::filesystem::path& all) {
  std::error_code ignored;  // a leftover harms nobody
  for (const auto& entry : std::filesystem::directory_iterator(all, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(folder_prefix) || name.size() != folder_prefix.size() + folder_letters)
      continue;
    const OpenFile folder = open_folder(entry.path());
    struct stat owner {};
    if (folder.descriptor() < 0 || ::fstat(folder.descriptor(), &owner) != 0) continue;
    if (owner.st_uid == ::geteuid() && ::flock(folder.descriptor(), LOCK_EX | LOCK_NB) == 0)
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

[[noreturn]] void refuse_folder() {
  throw std::system_error(errno, std::generic_category(), "make a temporary folder");
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  const std::filesystem::path all = std::filesystem::temp_directory_path();
  remove_left_folders(all);
  while (true) {
    std::string name = (all / folder_prefix).string() + std::string(folder_letters, 'X');
    if (!::mkdtemp(name.data())) refuse_folder();
    path_ = name;
    lock_ = open_folder(path_);
    if (lock_.descriptor() < 0 && errno != ENOENT) {
      const int reason = errno;
      ::rmdir(name.c_str());
      errno = reason;
      refuse_folder();
    }
    // Somebody who cleans up may be faster. Where there are no locks nobody does.
    (void)::flock(lock_.descriptor(), LOCK_EX);
    if (lock_.is_at(path_)) return;
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code left_behind;
  std::filesystem::remove_all(path_, left_behind);
}

}  // namespace stepgate
