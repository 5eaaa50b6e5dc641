// SPDX-License-Identifier: MIT
// The checks come before the read: a folder, a pipe or a huge file is refused unread.
#include "base/files/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include "base/text/units.h"

namespace stepgate {
namespace {

Diagnostic cannot_be_read(const Place& place, const std::string& reason) {
  return {place, "cannot be read: " + reason, "check its permissions"};
}

Diagnostic too_large(const Place& place, std::int64_t bytes, std::string_view what) {
  return {place, fmt::format("is {}", rounded_bytes_text(static_cast<double>(bytes))),
          fmt::format("{} is at most {}", what, bytes_text(largest_text_file_bytes))};
}

std::optional<Diagnostic> problem_of(const struct stat& status, const Place& place,
                                     std::string_view what) {
  if (S_ISDIR(status.st_mode))
    return Diagnostic{place, "is a folder", fmt::format("name the file of {} in it", what)};
  if (!S_ISREG(status.st_mode))
    return Diagnostic{place, "is not an ordinary file", fmt::format("{} is one", what)};
  if (status.st_size > largest_text_file_bytes) return too_large(place, status.st_size, what);
  return std::nullopt;
}

}  // namespace

bool is_json_or_compressed(const std::filesystem::path& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0 || !S_ISREG(there.st_mode)) return false;
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  std::array<char, 64> begin{};
  const ssize_t size = ::read(file.descriptor(), begin.data(), begin.size());
  if (size < 2) return false;
  const std::string_view text(begin.data(), static_cast<std::size_t>(size));
  const auto first = text.find_first_not_of(" \t\r\n");
  return text.starts_with("\x1f\x8b") || (first != std::string_view::npos && text[first] == '{');
}

TextOrProblem read_file(const std::filesystem::path& path, std::string_view what) {
  const Place place{path.generic_string(), 0, 0};
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return Diagnostic{place, "no such file", "check the path"};
    return cannot_be_read(place, std::strerror(errno));
  }
  // Checks the kind of file before it is opened, since opening a device may have side effects. What
  // is open is checked again.
  if (auto problem = problem_of(there, place, what)) return *problem;
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.descriptor() < 0) return cannot_be_read(place, std::strerror(errno));
  return read_open_file(file, place, what);
}

TextOrProblem read_open_file(const OpenFile& file, const Place& place, std::string_view what) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) return cannot_be_read(place, std::strerror(errno));
  if (auto problem = problem_of(status, place, what)) return *problem;
  std::string text;
  std::array<char, 1 << 16> chunk{};
  // The file may have grown since its size was read.
  while (std::ssize(text) <= largest_text_file_bytes) {
    const ssize_t count = ::read(file.descriptor(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_be_read(place, std::strerror(errno));
    if (count == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
  return too_large(place, std::ssize(text), what);
}

std::vector<std::filesystem::path> read_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    paths.push_back(entry->path());
  if (error) throw RequestError(cannot_be_read({folder.generic_string(), 0, 0}, error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace stepgate
