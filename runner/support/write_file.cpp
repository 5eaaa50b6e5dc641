// SPDX-License-Identifier: MIT
// Temporary file in the same folder, fsync, rename, fsync of the folder (POSIX).
#include "support/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "support/diagnostic.h"

namespace stepgate {
namespace {

// Between the name of a file that is being written and six characters of mkstemp's: not what a
// person would name a copy.
constexpr std::string_view mark_of_unfinished = ".unfinished-";

class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int descriptor() const { return descriptor_; }

  // A disk may report that it is full as late as here.
  int close() { return ::close(std::exchange(descriptor_, -1)); }

 private:
  int descriptor_;
};

int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return -1;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

[[noreturn]] void refuse_to_write(const std::filesystem::path& path, const std::string& reason) {
  throw RequestError(Diagnostic{Place{path.generic_string(), 0, 0}, "cannot be written: " + reason,
                                "check the folder's permissions and free space"});
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

struct Temporary {
  std::string name;
  OpenFile file;
};

// An empty file beside the path, in its folder, which is made if it is missing.
Temporary open_beside(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(folder_of(path), error);
  if (error) refuse_to_write(path, error.message());
  std::string name = path.string() + std::string(mark_of_unfinished) + "XXXXXX";
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) refuse_to_write(path, std::strerror(errno));
  return {std::move(name), OpenFile(descriptor)};
}

}  // namespace

void check_writable(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) refuse_to_write(path, std::strerror(EISDIR));
  ::unlink(open_beside(path).name.c_str());
}

void remove_leftovers(const std::filesystem::path& path) {
  const std::string stem = path.filename().string() + std::string(mark_of_unfinished);
  std::error_code ignored;  // a leftover harms nobody
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(path), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(stem) && name.size() == stem.size() + 6) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  auto [temporary, file] = open_beside(path);
  // mkstemp's files are private; a report or baseline is not.
  const bool written = ::fchmod(file.descriptor(), 0644) == 0 &&
                       write_all(file.descriptor(), text) == 0 && ::fsync(file.descriptor()) == 0 &&
                       file.close() == 0 && ::rename(temporary.c_str(), path.c_str()) == 0;
  if (!written) {
    const std::string reason = std::strerror(errno);
    ::unlink(temporary.c_str());
    refuse_to_write(path, reason);
  }
  // Without this the rename itself may be lost with the power; some file systems refuse it.
  const OpenFile directory(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY));
  if (directory.descriptor() >= 0) (void)::fsync(directory.descriptor());
}

}  // namespace stepgate
