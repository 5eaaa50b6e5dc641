// SPDX-License-Identifier: MIT
// Writes a temporary file in the same folder, then uses fsync, rename, and fsync of the folder
// (POSIX).
#include "base/files/write_file.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/files/leftovers.h"
#include "base/interruption.h"
#include "base/text/diagnostic.h"
#include "base/text/visible_text.h"

namespace stepgate {
namespace {

// Temporary files have the name of the file, this word, and a random mark.
constexpr std::string_view unfinished = ".unfinished-";
constexpr mode_t permissions = 07777;
constexpr int between_looks = 50;  // milliseconds between two tries of a wait

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

// Returns the descriptor of this process that the path names, if any. Such a path is written to,
// since a rename would put a file in its place.
std::optional<int> own_stream(const std::filesystem::path& path) {
  if (path == standard_output) return STDOUT_FILENO;
  const std::string name = std::filesystem::absolute(path).lexically_normal().string();
  if (name == "/dev/stdout") return STDOUT_FILENO;
  if (name == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    int descriptor = -1;
    if (!name.starts_with(folder)) continue;
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data() + folder.size(), end, descriptor).ptr == end) return descriptor;
  }
  return std::nullopt;
}

std::vector<std::filesystem::path>& noted_files() {
  static std::vector<std::filesystem::path> files;
  return files;
}

// Lists the files in a string that is never freed, since a signal handler may still read an earlier
// one.
const char* all_of_them(const std::vector<std::filesystem::path>& files) {
  static std::deque<std::string> said;
  std::string words;
  for (const auto& file : files)
    words += (words.empty() ? "written: " : ", ") + one_line(file.generic_string());
  return said.emplace_back(words + "\n").c_str();
}

// Follows symbolic links, so that a link stays and its target, whether it exists or not, is
// replaced.
std::filesystem::path file_of(std::filesystem::path path) {
  constexpr int most_links = 40;  // as many as Linux follows
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(path, error); ++links) {
    if (links == most_links) refuse_to_write(path, std::strerror(ELOOP));
    const auto target = std::filesystem::read_symlink(path, error);
    path = target.is_absolute() ? target : folder_of(path) / target;
  }
  if (std::filesystem::is_directory(path, error)) refuse_to_write(path, std::strerror(EISDIR));
  return path;
}

// Maps each path that this process checked to the file that it meant then; nullopt: a stream.
std::map<std::filesystem::path, std::optional<std::filesystem::path>>& checked_paths() {
  static std::map<std::filesystem::path, std::optional<std::filesystem::path>> paths;
  return paths;
}

// Returns the file that the path means, or nullopt for a stream.
std::optional<std::filesystem::path> target_of(const std::filesystem::path& path) {
  const auto checked = checked_paths().find(path);
  if (checked != checked_paths().end()) return checked->second;
  return is_stream(path) ? std::nullopt : std::optional(file_of(path));
}

struct Temporary {
  std::string name;
  OpenFile file;
};

// Creates an empty, locked file beside the path, and the folder if it is missing.
Temporary open_beside(const std::filesystem::path& path, mode_t mode) {
  make_folder_of(path);
  remove_leftovers(folder_of(path), path.filename().string() + std::string(unfinished), S_IFREG);
  while (true) {
    std::string name = path.string() + std::string(unfinished) + random_mark();
    OpenFile file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.descriptor() < 0 && errno == EEXIST) continue;
    if (file.descriptor() < 0) refuse_to_write(path, std::strerror(errno));
    // Another process may remove the file before it is locked; then the loop makes a new one. On
    // file systems without locks no process removes files.
    (void)::flock(file.descriptor(), LOCK_EX);
    if (file.is_at(name)) return {std::move(name), std::move(file)};
  }
}

bool has_owner_of(const struct stat& one, uid_t user, gid_t group) {
  return one.st_uid == user && one.st_gid == group;
}

// The mode with which a file begins that takes the place of another one: nobody may read it before
// it has the owner of that.
mode_t first_mode(const struct stat& there) {
  return has_owner_of(there, ::geteuid(), ::getegid()) ? there.st_mode & 0777 : 0600;
}

// Copies owner and mode of the existing file. Copies only the mode if chown is not permitted.
// Changes nothing that is right already, since some file systems (CIFS, exFAT) refuse any change.
bool take_over(int descriptor, const struct stat& there) {
  struct stat now {};
  if (::fstat(descriptor, &now) != 0) return false;
  const bool given = has_owner_of(now, there.st_uid, there.st_gid) ||
                     ::fchown(descriptor, there.st_uid, there.st_gid) == 0;
  const mode_t beyond_owner = given ? permissions : 0777;  // no set-user-id for another user
  const mode_t mode = there.st_mode & permissions & beyond_owner;
  return (now.st_mode & permissions) == mode || ::fchmod(descriptor, mode) == 0;
}

// Waits for a pipe, which accepts data only while a reader takes it.
void wait_a_little(int descriptor) {
  throw_if_interrupted();
  pollfd room{descriptor, POLLOUT, 0};
  ::poll(&room, descriptor >= 0 ? 1 : 0, between_looks);
}

void write_stream(const std::filesystem::path& path, std::string_view text) {
  OpenFile stream = open_stream(path);
  if (!write_all(stream.descriptor(), text) || stream.close() != 0)
    refuse_to_write(path, std::strerror(errno));
}

}  // namespace

const std::vector<std::filesystem::path>& files_written() {
  return noted_files();
}

void note_written(const std::filesystem::path& path) {
  auto& files = noted_files();
  if (std::find(files.begin(), files.end(), path) != files.end()) return;
  files.push_back(path);
  say_when_ended(all_of_them(files));
}

bool is_stream(const std::filesystem::path& path) {
  std::error_code missing;
  const auto status = std::filesystem::status(path, missing);
  return own_stream(path) ||
         (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
          !std::filesystem::is_directory(status));
}

bool is_standard_output(const std::filesystem::path& path) {
  return own_stream(path) == STDOUT_FILENO;
}

OpenFile open_stream(const std::filesystem::path& path) {
  if (const auto stream = own_stream(path)) {
    OpenFile copy(::fcntl(*stream, F_DUPFD_CLOEXEC, 0));
    if (copy.descriptor() < 0) refuse_to_write(path, std::strerror(errno));
    return copy;
  }
  while (true) {
    OpenFile stream(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (stream.descriptor() >= 0) return stream;
    const bool has_no_reader = errno == ENXIO && std::filesystem::is_fifo(path);
    if (!has_no_reader) refuse_to_write(path, std::strerror(errno));
    wait_a_little(-1);
  }
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      wait_a_little(descriptor);
      continue;
    }
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
  if (own_stream(path)) return (void)open_stream(path);
  const auto target = target_of(path);
  if (target) {
    ::unlink(open_beside(*target, 0600).name.c_str());
  } else if (::access(path.c_str(), W_OK) != 0) {
    // Only permissions are checked. Opening a pipe would wait for its reader, and closing it again
    // would end the reader's input.
    refuse_to_write(path, std::strerror(errno));
  }
  checked_paths().emplace(path, target);
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  const auto file_there = target_of(path);
  if (!file_there) return write_stream(path, text);
  const std::filesystem::path& target = *file_there;
  struct stat before {};
  const bool replaces = ::lstat(target.c_str(), &before) == 0 && S_ISREG(before.st_mode);
  auto [temporary, file] = open_beside(target, replaces ? first_mode(before) : 0666);
  const bool written = (!replaces || take_over(file.descriptor(), before)) &&
                       write_all(file.descriptor(), text) && ::fsync(file.descriptor()) == 0 &&
                       ::rename(temporary.c_str(), target.c_str()) == 0;
  if (!written) {
    const std::string reason = std::strerror(errno);
    ::unlink(temporary.c_str());
    refuse_to_write(path, reason);
  }
  if (!text.empty()) note_written(path);
  // Without this fsync a power failure may undo the rename. Some file systems refuse it, which is
  // ignored.
  const OpenFile directory(::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY));
  if (directory.descriptor() >= 0) (void)::fsync(directory.descriptor());
}

void append_to_file(const std::filesystem::path& path,
                    const std::function<std::string(std::size_t)>& text_behind) {
  const OpenFile file(::open(
      path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  struct stat status {};
  if (file.descriptor() < 0 || ::fstat(file.descriptor(), &status) != 0)
    refuse_to_write(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode))
    refuse_to_write(path, "is no ordinary file");
  const std::string text = text_behind(static_cast<std::size_t>(status.st_size));
  if (!write_all(file.descriptor(), text)) {
    const std::string reason = std::strerror(errno);
    (void)!::ftruncate(file.descriptor(), status.st_size);
    refuse_to_write(path, reason);
  }
  if (!text.empty() && S_ISREG(status.st_mode)) note_written(path);
}

void write_new_file(const std::filesystem::path& path, std::string_view text) {
  make_folder_of(path);
  // Writes in place: renaming a temporary file would replace a file that was created meanwhile.
  OpenFile file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.descriptor() < 0 && errno == EEXIST) {
    throw RequestError(Diagnostic{Place{path.generic_string(), 0, 0},
                                  "is there already, and is not written over",
                                  "name another file, or move this one away"});
  }
  if (file.descriptor() < 0) refuse_to_write(path, std::strerror(errno));
  if (!write_all(file.descriptor(), text) || ::fsync(file.descriptor()) != 0 || file.close() != 0) {
    const std::string reason = std::strerror(errno);
    ::unlink(path.c_str());
    refuse_to_write(path, reason);
  }
  note_written(path);
}

}  // namespace stepgate
