// SPDX-License-Identifier: MIT
#include "base/text/visible_text.h"

#include <gtest/gtest.h>

#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

TEST(VisibleText, LeavesWordsOfAnyLanguageAlone) {
  const std::string text = "bf16: 1.2 \u00b5s \u2192 \u5feb\U0001f642";
  EXPECT_EQ(one_line(text), text);
  EXPECT_EQ(visible_lines(text), text);
}

TEST(VisibleText, ShowsWhatWouldMoveTheCursorOrEndTheLine) {
  EXPECT_EQ(one_line("a\n::error::b\r\tc\x1b[31m\x7f"), "a\\n::error::b\\r\\tc\\x1b[31m\\x7f");
  EXPECT_EQ(one_line(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(one_line("a\u0085b\u2028c\u202ed\ufeff\uffff"),
            "a\\x85b\\u2028c\\u202ed\\ufeff\\uffff");
  EXPECT_EQ(visible_lines("a\r\nb\x1b"), "a\r\nb\\x1b");
}

TEST(VisibleText, LeavesNoCommandToACiSystem) {
  EXPECT_EQ(one_line("::error file=x::hi"), "\\x3a:error file=x::hi");
  EXPECT_EQ(one_line("  ::add-mask::a"), "  \\x3a:add-mask::a");
  EXPECT_EQ(one_line("std::sort, a ::b"), "std::sort, a ::b");
  EXPECT_EQ(visible_lines("a\n::stop-commands::b"), "a\n\\x3a:stop-commands::b");
  EXPECT_EQ(one_line("a ##[error]b ##vso[task]c ##teamcity[d"),
            "a \\x23#[error]b \\x23#vso[task]c \\x23#teamcity[d");
  EXPECT_EQ(one_line("## [a heading]"), "## [a heading]");
}

TEST(VisibleText, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(one_line("caf\xe9 \xe2\x82"), "caf\\xe9 \\xe2\\x82");
}

TEST(VisibleText, CutsBetweenCharacters) {
  EXPECT_EQ(beginning_of("abc", 3), "abc");
  EXPECT_EQ(beginning_of("abcd", 3), "abc\u2026");
  EXPECT_EQ(beginning_of("a\u5febb", 3), "a\u2026");
}

// A file may contain any key, and messages about it are printed into the log of a CI system.
TEST(VisibleText, IsWhatDiagnosticsAreMadeOf) {
  EXPECT_EQ(to_string({{"a\n.toml", 1, 2}, "unknown key 'a\n::error file=x::hi'", "\x1b[2J"}),
            "a\\n.toml:1:2: unknown key 'a\\n::error file=x::hi'; \\x1b[2J");
}

}  // namespace
}  // namespace stepgate
