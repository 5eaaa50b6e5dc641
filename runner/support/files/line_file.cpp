// SPDX-License-Identifier: MIT
// POSIX open and write; nothing is kept in this process.
#include "support/files/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "support/files/write_file.h"

namespace stepgate {

LineFile::LineFile(const std::filesystem::path& path) : path_(path), descriptor_(-1) {
  make_folder_of(path);
  constexpr mode_t as_umask_says = 0666;
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, as_umask_says);
  if (descriptor_ < 0) refuse_to_write(path, std::strerror(errno));
}

LineFile::~LineFile() {
  ::close(descriptor_);
}

void LineFile::append(std::string_view lines) {
  if (!write_all(descriptor_, lines)) refuse_to_write(path_, std::strerror(errno));
}

}  // namespace stepgate
