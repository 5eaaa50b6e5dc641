// SPDX-License-Identifier: MIT
// The checks come before the read: a folder, a pipe or a huge file is refused unread.
#include "support/files/read_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "support/text/units.h"

namespace stepgate {
namespace {

Diagnostic cannot_be_read(const Place& place, const std::string& reason) {
  return {place, "cannot be read: " + reason, "check its permissions"};
}

}  // namespace

TextOrProblem read_file(const std::filesystem::path& path, std::string_view what) {
  const Place place{path.generic_string(), 0, 0};
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return Diagnostic{place, "no such file", "check the path"};
  }
  if (status.type() == std::filesystem::file_type::directory) {
    return Diagnostic{place, "is a folder", fmt::format("name the file of {} in it", what)};
  }
  if (status.type() == std::filesystem::file_type::none) {
    return cannot_be_read(place, error.message());
  }
  if (status.type() != std::filesystem::file_type::regular) {
    return Diagnostic{place, "is not an ordinary file", fmt::format("{} is one", what)};
  }
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (!error && bytes > largest_text_file_bytes) {
    return Diagnostic{place, fmt::format("is {}", rounded_bytes_text(static_cast<double>(bytes))),
                      fmt::format("{} is at most {}", what, bytes_text(largest_text_file_bytes))};
  }
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  std::string text;
  const auto read_up_to = [&](std::int64_t most) {
    const auto before = std::ssize(text);
    text.resize(static_cast<std::size_t>(most));
    if (stream) stream.read(text.data() + before, most - before);
    text.resize(static_cast<std::size_t>(before + stream.gcount()));
    return std::ssize(text) == most;
  };
  // The file may grow after its size was asked for.
  if (read_up_to(std::clamp<std::int64_t>(bytes + 1, 1, largest_text_file_bytes))) {
    read_up_to(largest_text_file_bytes);
  }
  if (error || (!stream && !stream.eof()) || stream.bad()) {
    const std::string reason = error ? error.message() : std::strerror(errno != 0 ? errno : EIO);
    return cannot_be_read(place, reason);
  }
  return text;
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
