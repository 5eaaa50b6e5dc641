// SPDX-License-Identifier: MIT
// Text that files and libraries wrote, such as keys, claims and reasons, where it could pass for
// something else: a line of a log, a command to a terminal or to a CI system.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace stepgate {

// Begin and end a colour on a terminal: passes, fails, neither; no colour.
inline constexpr std::array<std::string_view, 4> terminal_colours{"\x1b[32m", "\x1b[31m",
                                                                  "\x1b[33m", "\x1b[0m"};

// Makes text visible that comes piece by piece. Controls, blanks other than the space, characters
// that show nothing or turn the direction of text (invisible_characters.h) and bytes that are not
// UTF-8 become escapes (\n, \x1b, \u202e). So does the first character of what a CI system takes
// for a command: GitHub's "::" at the beginning of a line, also behind spaces, and "##[", "##vso[",
// "##teamcity[" and the like anywhere.
class VisibleText {
 public:
  struct Shows {
    bool lines = false;    // line feeds stay
    bool colours = false;  // terminal_colours stay
  };
  explicit VisibleText(Shows shows) : shows_(shows) {}

  enum class Rest { comes_later, none };
  // Returns what can be shown of all that was added. Where the rest comes later, the beginning of a
  // character or command is held back.
  std::string add(std::string_view, Rest);
  // To be called when what is added next may stand at the beginning of a line.
  void begin_line() { at_line_start_ = true; }

 private:
  // Takes one character or escape; false where more must come first.
  bool take_one(std::string_view& text, std::string& safe, Rest);

  Shows shows_;
  std::string held_;
  bool at_line_start_ = true;
};

// The text on one line.
std::string one_line(std::string_view);
// The text; its line feeds stay.
std::string visible_lines(std::string_view);
// JSON of the same value: the same characters are escapes of JSON, since JSON may go to a log.
std::string visible_json(std::string);

// Cuts the text after whole characters to at most `most_bytes`, and adds an ellipsis if it was
// longer.
std::string beginning_of(const std::string& text, std::size_t most_bytes);

}  // namespace stepgate
