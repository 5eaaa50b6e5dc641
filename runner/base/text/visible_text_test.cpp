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
  EXPECT_EQ(visible_lines("a\nb\r\x1b"), "a\nb\\r\\x1b");
}

TEST(VisibleText, LeavesNoCommandToACiSystem) {
  EXPECT_EQ(one_line("::error file=x::hi"), "\\x3a:error file=x::hi");
  EXPECT_EQ(one_line("  ::add-mask::a"), "  \\x3a:add-mask::a");
  EXPECT_EQ(one_line("std::sort, a ::b"), "std::sort, a ::b");
  EXPECT_EQ(visible_lines("a\n::stop-commands::b"), "a\n\\x3a:stop-commands::b");
  EXPECT_EQ(one_line("a ##[error]b ##vso[task]c ##teamcity[d"),
            "a \\x23#[error]b \\x23#vso[task]c \\x23#teamcity[d");
  EXPECT_EQ(one_line("a ##VSO[task]"), "a \\x23#VSO[task]");
  EXPECT_EQ(one_line("## [a heading] ##1 ##"), "## [a heading] ##1 ##");
  EXPECT_EQ(one_line("at::native::add"), "at::native::add");
}

// .NET trims all of these before it looks for a command; the last eight show nothing at all.
TEST(VisibleText, ShowsEveryBlankButTheSpaceAndWhatHasNoShape) {
  for (const char* letter :
       {"\t",     "\v",     "\f",     "\u0085", "\u00a0", "\u1680", "\u2003",
        "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u200b",
        "\u00ad", "\u061c", "\u180e", "\u3164", "\u2800", "\ufe0f", "\U000e0041"}) {
    const std::string text = std::string(letter) + "::error::pwned";
    const std::string shown = one_line(text);
    EXPECT_EQ(shown.front(), '\\') << shown;
    EXPECT_EQ(shown.find(letter), std::string::npos) << shown;
    EXPECT_EQ(visible_json('"' + text + '"').find(letter), std::string::npos) << shown;
  }
  EXPECT_EQ(one_line("\U000e0041"), "\\U000e0041");
}

// However the text is cut, for example within a character.
TEST(VisibleText, IsTheSamePieceByPiece) {
  const std::string text =
      "\u00b5s\n ::error::\u5feb ##v "
      "##vso[a]##\x1b[31mred\x1b[0m\x1b[2J\xe2\x82\n:a\n#[\xf0\x9f\x99\x82";
  const VisibleText::Shows shows{.lines = true, .colours = true};
  const std::string whole = VisibleText(shows).add(text, VisibleText::Rest::none);
  EXPECT_EQ(
      whole,
      "\u00b5s\n \\x3a:error::\u5feb ##v \\x23#vso[a]##\x1b[31mred\x1b[0m\\x1b[2J\\xe2\\x82\n:a\n#["
      "\xf0\x9f\x99\x82");
  for (std::size_t size = 1; size < 8; ++size) {
    VisibleText pieces(shows);
    std::string all;
    for (std::size_t at = 0; at < text.size(); at += size)
      all += pieces.add(std::string_view(text).substr(at, size), VisibleText::Rest::comes_later);
    all += pieces.add({}, VisibleText::Rest::none);
    EXPECT_EQ(all, whole) << "in pieces of " << size;
  }
}

TEST(VisibleText, EscapesJsonForTheSameValue) {
  EXPECT_EQ(visible_json("{\"a\":\"\u00b5 # ##\"}"), "{\"a\":\"\u00b5 # ##\"}");
  EXPECT_EQ(visible_json("\"##vso[x]\u009b\U000e0041\""),
            "\"\\u0023#vso[x]\\u009b\\udb40\\udc41\"");
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
