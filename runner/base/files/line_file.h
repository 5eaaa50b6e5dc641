// SPDX-License-Identifier: MIT
// A file that grows line by line, each of them there as soon as it is written: for reports of runs
// that may be killed. write_file.h writes a file whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/files/open_file.h"

namespace stepgate {

// Throws what LineFile would throw of a file that is there, which it empties and write_file would
// replace: the mode of the file counts, and not that of its folder alone. Changes nothing.
void check_line_file(const std::filesystem::path&);

class LineFile {
 public:
  // Makes missing folders and empties the file. Paths that are no regular file are left to
  // write_file.h. Throws RequestError placed at it when that is refused.
  explicit LineFile(const std::filesystem::path&);

  // Whole lines. Throws RequestError when they cannot be written.
  void append(std::string_view lines);

 private:
  std::filesystem::path path_;
  OpenFile file_;
};

}  // namespace stepgate
