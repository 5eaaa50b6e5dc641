// SPDX-License-Identifier: MIT
#include "support/line_file.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "support/diagnostic.h"
#include "support/read_file.h"
#include "support/temporary_folder.h"

namespace stepgate {
namespace {

std::string text_of(const std::filesystem::path& path) {
  return std::get<std::string>(read_file(path, "a report"));
}

TEST(LineFile, HasEveryLineAsSoonAsItIsWrittenAndForgetsAnEarlierRun) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "new" / "report.json";
  {
    LineFile file(path);
    file.append("one\n");
    EXPECT_EQ(text_of(path), "one\n");
    file.append("two\n");
    EXPECT_EQ(text_of(path), "one\ntwo\n");
  }
  LineFile again(path);
  EXPECT_EQ(text_of(path), "");
}

TEST(LineFile, SaysWhereItCannotBe) {
  const TemporaryFolder folder;
  EXPECT_THROW(LineFile(folder.path()), RequestError);
}

TEST(LineFile, SaysWhenTheDiskIsFull) {
  LineFile full("/dev/full");
  EXPECT_THROW(full.append("line\n"), RequestError);
}

}  // namespace
}  // namespace stepgate
