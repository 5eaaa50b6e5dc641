// SPDX-License-Identifier: MIT
// Uses POSIX open and write; lines are not buffered in this process.
#include "base/files/line_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "base/files/write_file.h"

namespace stepgate {
namespace {

OpenFile open_emptied(const std::filesystem::path& path) {
  if (is_stream(path)) return open_stream(path);
  make_folder_of(path);
  constexpr mode_t as_umask_says = 0666;
  std::error_code missing;
  const bool was_there = std::filesystem::exists(path, missing);
  OpenFile file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, as_umask_says));
  if (file.descriptor() < 0) refuse_to_write(path, std::strerror(errno));
  if (was_there) note_written(path);  // its old content is gone
  return file;
}

}  // namespace

void check_line_file(const std::filesystem::path& path) {
  if (is_stream(path)) return;
  const OpenFile file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.descriptor() < 0 && errno != ENOENT) refuse_to_write(path, std::strerror(errno));
}

LineFile::LineFile(const std::filesystem::path& path) : path_(path), file_(open_emptied(path)) {}

void LineFile::append(std::string_view lines) {
  if (!write_all(file_.descriptor(), lines)) {
    const std::string reason = std::strerror(errno);
    (void)!::ftruncate(file_.descriptor(), 0);  // which a stream refuses
    refuse_to_write(path_, reason);
  }
  if (!lines.empty() && !is_stream(path_)) note_written(path_);
}

}  // namespace stepgate
