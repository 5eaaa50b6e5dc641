// SPDX-License-Identifier: MIT
// Golden files, with which tests compare their output. They change only in review:
// STEPGATE_UPDATE_GOLDEN=1 rewrites them, and the diff shows the changes.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <variant>

#include "base/files/read_file.h"
#include "base/files/write_file.h"

namespace stepgate {

inline bool updates_goldens() {
  return std::getenv("STEPGATE_UPDATE_GOLDEN") != nullptr;
}

// Fails the test unless the file has exactly that text.
inline void expect_golden(const std::filesystem::path& file, const std::string& text) {
  if (updates_goldens()) {
    write_file(file, text);
    return;
  }
  const TextOrProblem golden = read_file(file, "a golden file");
  const auto* expected = std::get_if<std::string>(&golden);
  EXPECT_EQ(expected != nullptr ? *expected : "(no such file)", text)
      << file << " differs; if the new text is right, run the tests with STEPGATE_UPDATE_GOLDEN=1";
}

}  // namespace stepgate
