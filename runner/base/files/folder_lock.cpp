// SPDX-License-Identifier: MIT
#include "base/files/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>

#include "base/interruption.h"
#include "base/text/diagnostic.h"
#include "base/text/visible_text.h"

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds between_tries{10};
// A lock file begins with its holder's process number and, behind a blank, its work. A byte at this
// offset says that another process waits for the lock.
constexpr off_t place_of_waiting = 512;
// The time at which this thread last released a lock that another process was waiting for.
thread_local Clock::time_point given_back;

[[noreturn]] void refuse_to_lock(const std::filesystem::path& folder, const std::string& reason,
                                 const std::string& way_out) {
  throw RequestError(
      Diagnostic{Place{folder.generic_string(), 0, 0}, "cannot be locked: " + reason, way_out});
}

[[noreturn]] void refuse_to_lock(const std::filesystem::path& folder, const std::string& reason) {
  refuse_to_lock(folder, reason, "check its permissions, or name another folder");
}

// Returns a file mode with which every user who may write in the folder can hold the lock. A user
// who may only read the folder cannot, since that would block all writers.
mode_t mode_in(const std::filesystem::path& folder) {
  struct stat status {};
  mode_t mode = 0600;
  if (::stat(folder.c_str(), &status) != 0) return mode;
  if (status.st_mode & S_IWGRP) mode |= 0060;
  if (status.st_mode & S_IWOTH) mode |= 0006;
  return mode;
}

// Creates the lock file and names it only after its mode is set, which the umask restricts at
// first. So every permitted user who finds the name can open the file. Returns false, with errno
// set and `file` empty, if that fails.
bool make_lock(const std::filesystem::path& folder, const std::filesystem::path& path,
               OpenFile& file) {
  file = OpenFile(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.descriptor() >= 0) {
    (void)::fchmod(file.descriptor(), mode_in(folder));
    const std::string unnamed = "/proc/self/fd/" + std::to_string(file.descriptor());
    if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0)
      return true;
    file = OpenFile();
    if (errno == EEXIST) return false;
  }
  // Fallback for file systems without unnamed files and for systems without /proc: for a moment
  // only the owner can open the file.
  file = OpenFile(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.descriptor() < 0) return false;
  (void)::fchmod(file.descriptor(), mode_in(folder));
  return true;
}

OpenFile open_lock(const std::filesystem::path& folder, const std::filesystem::path& path) {
  OpenFile file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (file.descriptor() >= 0 || (errno == ENOENT && make_lock(folder, path, file))) return file;
  if (errno == ENOENT) refuse_to_lock(folder, "it is gone", "make it again, or name another one");
  if (errno == EEXIST) file = OpenFile(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  // ENOENT: the holder has just removed the file. The next try creates it again.
  if (file.descriptor() < 0 && errno != ENOENT) refuse_to_lock(folder, std::strerror(errno));
  return file;
}

// Returns what the holder wrote into the file: "process 4711", "process 4711 (l.ledger)". Empty
// where that is no process number.
std::string holder_of(const std::filesystem::path& path) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string text(place_of_waiting, '\0');
  const ssize_t length = ::read(file.descriptor(), text.data(), text.size());
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  text.resize(std::min(text.find('\0'), text.size()));
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0) return {};
  const std::string process = "process " + text.substr(0, digits);
  return digits == text.size() ? process
                               : fmt::format("{} ({})", process, one_line(text.substr(digits + 1)));
}

void sign(const OpenFile& file, const std::string& work) {
  std::string holder = std::to_string(::getpid());
  if (!work.empty()) holder += ' ' + work.substr(0, place_of_waiting / 2);
  (void)!::ftruncate(file.descriptor(), 0);
  (void)!::pwrite(file.descriptor(), holder.data(), holder.size(), 0);
}

void say_in_file_that_one_waits(const OpenFile& file) {
  (void)!::pwrite(file.descriptor(), "w", 1, place_of_waiting);
}

bool does_anybody_wait(const OpenFile& file) {
  struct stat status {};
  return ::fstat(file.descriptor(), &status) == 0 && status.st_size > place_of_waiting;
}

// One wait for a lock: reports once that it waits, and throws when one holder keeps the lock for
// too long.
class LockWait {
 public:
  LockWait(const std::filesystem::path& folder, const std::filesystem::path& file,
           const LockPatience& patience)
      : folder_(folder), file_(file), patience_(patience) {}

  void go_on() {
    throw_if_interrupted();
    std::this_thread::sleep_for(between_tries);
    const auto now = Clock::now();
    if (std::string holder = holder_of(file_); !holder.empty() && holder != holder_) {
      if (!holder_.empty()) since_ = now;
      holder_ = std::move(holder);
    }
    if (!said_ && now - begun_ >= patience_.silent) {
      *patience_.words << fmt::format("waiting for {}, which {} has locked\n",
                                      folder_.generic_string(), holder())
                       << std::flush;
      said_ = true;
    }
    if (now - since_ < patience_.most) return;
    refuse_to_lock(
        folder_,
        fmt::format("{} has held it for {} s", holder(),
                    std::chrono::duration_cast<std::chrono::seconds>(patience_.most).count()),
        "wait until that has ended, or name another folder");
  }

 private:
  std::string holder() const { return holder_.empty() ? "another process" : holder_; }

  const std::filesystem::path& folder_;
  const std::filesystem::path& file_;
  const LockPatience& patience_;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point since_ = begun_;
  std::string holder_;
  bool said_ = false;
};

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, const LockPatience& patience)
    : path_(folder / lock_file_name) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) refuse_to_lock(folder, error.message());
  // A waiting process only polls the lock. So a thread that released the lock and wants it again
  // first pauses for two polls.
  std::this_thread::sleep_until(given_back + 2 * between_tries);
  // The holder removes the file, and another process may hold its successor.
  for (LockWait wait(folder, path_, patience);; wait.go_on()) {
    if (!file_.is_at(path_)) file_ = open_lock(folder, path_);
    if (file_.descriptor() < 0) continue;
    if (::flock(file_.descriptor(), LOCK_EX | LOCK_NB) == 0) {
      if (file_.is_at(path_)) break;
    } else {
      if (errno != EWOULDBLOCK && errno != EINTR) refuse_to_lock(folder, std::strerror(errno));
      say_in_file_that_one_waits(file_);
    }
  }
  sign(file_, patience.work);
}

FolderLock::~FolderLock() {
  if (does_anybody_wait(file_)) given_back = Clock::now();
  ::unlink(path_.c_str());  // before the release: a removed file cannot be held
}

}  // namespace stepgate
