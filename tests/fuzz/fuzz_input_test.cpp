// SPDX-License-Identifier: MIT
// Tests that the checks of fuzz targets detect readers and writers that lose data, and outputs that
// are not harmless.
#include "tests/fuzz/fuzz_input.h"

#include <gtest/gtest.h>

#include "base/files/read_file.h"
#include "tests/fuzz/harm_in_output.h"

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

TEST(HarmInOutput, IsACommandAnInvisibleCharacterOrNoUtf8) {
  for (const char* white :
       {"", " ", "a\n", "\t", "\v", "\f", "\r", "\u0085", "\u00a0", "\u1680", "\u180e", "\u2003",
        "\u200b", "\u2028", "\u202f", "\u205f", "\u3000", "\ufeff", " \u3000 "})
    EXPECT_TRUE(harm_in(white + std::string("::error::x"))) << white;
  for (const char* planted : {"a ##[error]x",     "##VsO[task]", "##teamcity[x]",
                              "# ###[x]",         "\x1b[2J",     "\x7f",
                              "\u009b",           "\t",          "\r",
                              "a\u202e",          "\u2066",      "\u061c",
                              "\u00ad",           "\U000e0041",  "\xc2",
                              "\xe2\x80",         "\xc0\xaf",    "\xed\xa0\x80",
                              "\xf5\x80\x80\x80", "\x80"})
    EXPECT_TRUE(harm_in(planted)) << planted;
  EXPECT_EQ(harm_in("at::add of 3 \u00b5s\n : :: ## [a] #[b] ##1[c]\n\U0001f600 \u4e00\n"),
            std::nullopt);
}

TEST(FaultOfXml, IsATagAnAttributeAnEntityOrAScript) {
  for (const char* planted :
       {"<p>", "</p>", "<p><b></p></b>", "<p>&x;</p>", "<p>& </p>", "<p>&#x;</p>", "<p a=b></p>",
        "<p a></p>", "<p a=\"<\"/>", "<p a=\"b\"c/>", "<p onload=\"x\"/>", "<script></script>",
        "<p", "a < b", "<!DOCTYPE html"})
    EXPECT_TRUE(fault_of_xml(planted)) << planted;
  EXPECT_EQ(
      fault_of_xml("<?xml version=\"1.0\"?>\n<p a=\"b\"\n c=\"\">1 &lt; 2 > 1&#8217;<br/></p>\n"),
      std::nullopt);
}

}  // namespace
}  // namespace stepgate
