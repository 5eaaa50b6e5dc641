// SPDX-License-Identifier: MIT
#include "support/files/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace stepgate {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "stepgate-XXXXXX").string();
  if (!::mkdtemp(name.data())) {
    throw std::system_error(errno, std::generic_category(), "make a temporary folder");
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code left_behind;
  std::filesystem::remove_all(path_, left_behind);
}

}  // namespace stepgate
