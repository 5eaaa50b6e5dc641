// SPDX-License-Identifier: MIT
// Tests that the checks of fuzz targets detect readers and writers that lose data.
#include "tests/fuzz/fuzz_input.h"

#include <gtest/gtest.h>

#include "base/files/read_file.h"

namespace stepgate {
namespace {

using Written = std::optional<std::string>;

TEST(FuzzInput, EndsAWriterWhoseTextCannotBeReadOrReadsOtherwise) {
  const auto faithful = [](std::string_view text) { return Written(text); };
  const auto forgets = [](std::string_view text) { return Written(text.substr(1)); };
  const auto unreadable = [](std::string_view text) {
    return text.starts_with('?') ? Written() : Written("?");
  };
  EXPECT_EQ(check_reads_back("text", faithful), "text");
  EXPECT_EQ(check_reads_back("text", [](std::string_view) { return Written(); }), std::nullopt);
  EXPECT_DEATH(check_reads_back("text", forgets), "written again reads the same");
  EXPECT_DEATH(check_reads_back("text", unreadable), "what was written can be read");
}

TEST(FuzzInput, EndsAReaderThatTakesAnotherByte) {
  const auto only_one = [](std::string_view text) {
    return text == "text" ? Written(text) : Written();
  };
  check_digested("text", only_one);
  EXPECT_DEATH(check_digested("text", [](std::string_view text) { return Written(text); }),
               "a byte that was changed is noticed");
}

TEST(FuzzInput, IsAFileThatPassesTheLastTextAlone) {
  FuzzedFile file;
  (void)file.with("a longer text");
  EXPECT_EQ(std::get<std::string>(read_file(file.with("short"), "a file")), "short");
}

TEST(FuzzInput, FindsTheNameThatATextGivesItself) {
  EXPECT_EQ(fuzzed_name("a = 1\nscenario = \"small\"\n", "scenario"), "small");
  EXPECT_EQ(fuzzed_name("scenario = 1", "scenario"), "");
}

}  // namespace
}  // namespace stepgate
