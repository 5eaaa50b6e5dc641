// SPDX-License-Identifier: MIT
#include "base/files/leftovers.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <random>
#include <system_error>

#include "base/files/open_file.h"

namespace stepgate {
namespace {

constexpr std::size_t digits_of_mark = 16;

bool has_mark(std::string_view name, std::string_view stem) {
  return name.size() == stem.size() + digits_of_mark && name.starts_with(stem) &&
         name.find_first_not_of("0123456789abcdef", stem.size()) == std::string_view::npos;
}

}  // namespace

std::string random_mark() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

void remove_leftovers(const std::filesystem::path& folder, std::string_view stem, mode_t kind) {
  std::error_code ignored;  // what stays does no harm
  for (auto entry = std::filesystem::directory_iterator(folder, ignored);
       !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    const std::filesystem::path& path = entry->path();
    if (!has_mark(path.filename().string(), stem)) continue;
    const OpenFile left(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    std::error_code stays;
    if (left.descriptor() >= 0 && ::fstat(left.descriptor(), &status) == 0 &&
        (status.st_mode & S_IFMT) == kind && status.st_uid == ::geteuid() &&
        ::flock(left.descriptor(), LOCK_EX | LOCK_NB) == 0)
      std::filesystem::remove_all(path, stays);
  }
}

}  // namespace stepgate
