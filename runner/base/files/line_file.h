// SPDX-License-Identifier: MIT
// A file that grows line by line, each of them there as soon as it is written: for reports of runs
// that may be killed. write_file.h writes a file whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/files/open_file.h"

namespace stepgate {

// Throws what the constructor of LineFile would throw for this path, without changing anything. An
// existing file must be writable itself, since LineFile empties it; a writable folder is not
// enough, as it is for write_file.
void check_line_file(const std::filesystem::path&);

class LineFile {
 public:
  // Creates missing folders and empties the file. Refuses paths that are no regular file;
  // write_file.h writes to those. Throws RequestError placed at the file when the system refuses.
  explicit LineFile(const std::filesystem::path&);

  // Appends whole lines. Throws RequestError when they cannot be written; the file is empty then,
  // since half of a report would be taken for a whole one.
  void append(std::string_view lines);

 private:
  std::filesystem::path path_;
  OpenFile file_;
};

}  // namespace stepgate
