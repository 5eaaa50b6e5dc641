// SPDX-License-Identifier: MIT
// Temporary file in the same folder, fsync, rename, fsync of the folder (POSIX).
#include "support/files/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "support/text/diagnostic.h"

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
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int descriptor() const { return descriptor_; }

  // A disk may report that it is full as late as here.
  int close() { return ::close(std::exchange(descriptor_, -1)); }

 private:
  int descriptor_;
};

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

// What is written into as it is, since a rename would put a file in its place: devices, and the
// streams of this process by their names.
bool is_stream(const std::filesystem::path& path) {
  const std::string name = std::filesystem::absolute(path).lexically_normal().string();
  for (const std::string_view streams : {"/dev/std", "/dev/fd/", "/proc/"}) {
    if (name.starts_with(streams)) return true;
  }
  std::error_code missing;
  return std::filesystem::is_character_file(path, missing);
}

// Through links, so that a link stays one; of what is a file or not there yet.
std::filesystem::path file_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return path;
  if (std::filesystem::is_directory(status)) refuse_to_write(path, std::strerror(EISDIR));
  if (!std::filesystem::is_regular_file(status)) refuse_to_write(path, "it is no file");
  const auto target = std::filesystem::canonical(path, error);
  return error ? path : target;
}

OpenFile open_stream(const std::filesystem::path& path) {
  OpenFile stream(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY));
  if (stream.descriptor() < 0) refuse_to_write(path, std::strerror(errno));
  return stream;
}

void write_stream(const std::filesystem::path& path, std::string_view text) {
  OpenFile stream = open_stream(path);
  if (!write_all(stream.descriptor(), text) || stream.close() != 0)
    refuse_to_write(path, std::strerror(errno));
}

struct Temporary {
  std::string name;
  OpenFile file;
};

// An empty file beside the path, in its folder, which is made if it is missing.
Temporary open_beside(const std::filesystem::path& path) {
  make_folder_of(path);
  std::string name = path.string() + std::string(mark_of_unfinished) + "XXXXXX";
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) refuse_to_write(path, std::strerror(errno));
  return {std::move(name), OpenFile(descriptor)};
}

}  // namespace

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void refuse_to_write(const std::filesystem::path& path, const std::string& reason) {
  throw RequestError(Diagnostic{Place{path.generic_string(), 0, 0}, "cannot be written: " + reason,
                                "check the folder's permissions and free space"});
}

void make_folder_of(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(folder_of(path), error);
  if (error) refuse_to_write(path, error.message());
}

void check_writable(const std::filesystem::path& path) {
  if (is_stream(path)) {
    (void)open_stream(path);
    return;
  }
  ::unlink(open_beside(file_of(path)).name.c_str());
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
  if (is_stream(path)) return write_stream(path, text);
  const std::filesystem::path target = file_of(path);
  auto [temporary, file] = open_beside(target);
  // mkstemp's files are private; a report or baseline is not.
  const bool written = ::fchmod(file.descriptor(), 0644) == 0 &&
                       write_all(file.descriptor(), text) && ::fsync(file.descriptor()) == 0 &&
                       file.close() == 0 && ::rename(temporary.c_str(), target.c_str()) == 0;
  if (!written) {
    const std::string reason = std::strerror(errno);
    ::unlink(temporary.c_str());
    refuse_to_write(path, reason);
  }
  // Without this the rename itself may be lost with the power; some file systems refuse it.
  const OpenFile directory(::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY));
  if (directory.descriptor() >= 0) (void)::fsync(directory.descriptor());
}

}  // namespace stepgate
