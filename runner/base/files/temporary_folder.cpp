// SPDX-License-Identifier: MIT
// A process holds a lock on a file in its folder, which the system releases when the process ends.
// A folder without that file belongs to another program, whatever its name.
#include "base/files/temporary_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace stepgate {
namespace {

constexpr std::string_view folder_prefix = "stepgate.";
constexpr std::size_t folder_letters = 6;
constexpr std::string_view marker_name = ".made-by-stepgate";

OpenFile open_marker(const std::filesystem::path& folder, int flags) {
  constexpr mode_t own = 0600;
  return OpenFile(
      ::open((folder / marker_name).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | flags, own));
}

// Removes the folders that killed processes of this user left. Folders of other users stay.
void remove_left_folders(const std::filesystem::path& all) {
  std::error_code ignored;  // a folder that stays does no harm
  for (const auto& entry : std::filesystem::directory_iterator(all, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(folder_prefix) || name.size() != folder_prefix.size() + folder_letters)
      continue;
    if (entry.is_symlink(ignored)) continue;
    const OpenFile marker = open_marker(entry.path(), 0);
    struct stat owner {};
    if (marker.descriptor() < 0 || ::fstat(marker.descriptor(), &owner) != 0) continue;
    if (owner.st_uid == ::geteuid() && ::flock(marker.descriptor(), LOCK_EX | LOCK_NB) == 0)
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
    lock_ = open_marker(path_, O_CREAT | O_EXCL);
    if (lock_.descriptor() < 0 && errno != ENOENT) {
      const int reason = errno;
      ::rmdir(name.c_str());
      errno = reason;
      refuse_folder();
    }
    // Another process may remove the folder before it is locked; then the loop makes a new one. On
    // file systems without locks no process removes folders.
    (void)::flock(lock_.descriptor(), LOCK_EX);
    if (lock_.is_at(path_ / marker_name)) return;
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code left_behind;
  std::filesystem::remove_all(path_, left_behind);
}

}  // namespace stepgate
