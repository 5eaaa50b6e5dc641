// SPDX-License-Identifier: MIT
#include "base/text/visible_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/text/ascii.h"
#include "base/text/invisible_characters.h"
#include "base/text/utf8.h"

namespace stepgate {
namespace {

// Length in bytes of the first character of a text that is not empty; 0 if it is not UTF-8.
std::size_t length_of_first(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() < length || first_bad_utf8(text.substr(0, length))) return 0;
  return length;
}

std::uint32_t code_point(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return lead;
  std::uint32_t code = lead & (0xffU >> (character.size() + 1));
  for (const char next : character.substr(1)) code = code << 6 | (static_cast<unsigned>(next) & 63);
  return code;
}

bool is_invisible(std::uint32_t code) {
  const auto* const after =
      std::ranges::upper_bound(invisible_characters, code, {}, &CodePoints::first);
  return after != invisible_characters.begin() && code <= std::prev(after)->last;
}

// Whether more bytes could make one character of the text.
bool may_be_cut(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return text.size() < length && std::ranges::all_of(text.substr(1), [](char c) {
           return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
         });
}

std::vector<std::uint32_t> utf16(std::uint32_t code) {
  if (code < 0x10000) return {code};
  code -= 0x10000;
  return {0xd800 + (code >> 10U), 0xdc00 + (code & 0x3ffU)};
}

std::string escaped(std::uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
  }
}

// Whether a text begins so, or could if more came.
enum class Beginning { yes, maybe, no };

// GitHub's runner trims a line before it looks for "::" at its beginning (ActionCommand.cs), so in
// the middle of a line C++ names stay. It looks for "##[" anywhere; so does Azure's agent for
// "##vso[", in any case of letters (Command.cs), and TeamCity's for "##teamcity[".
Beginning beginning_of_command(std::string_view text, bool at_line_start) {
  constexpr std::size_t longest_name = 16;
  if (at_line_start && text.starts_with(':')) {
    if (text.size() == 1) return Beginning::maybe;
    return text[1] == ':' ? Beginning::yes : Beginning::no;
  }
  if (!text.starts_with('#')) return Beginning::no;
  if (text.size() == 1) return Beginning::maybe;
  if (text[1] != '#') return Beginning::no;
  std::size_t end = 2;
  while (end < text.size() && end < longest_name && small_letter(text[end]) >= 'a' &&
         small_letter(text[end]) <= 'z')
    ++end;
  if (end == text.size()) return Beginning::maybe;
  return text[end] == '[' ? Beginning::yes : Beginning::no;
}

Beginning beginning_of_colour(std::string_view text) {
  for (const std::string_view colour : terminal_colours) {
    if (text.starts_with(colour)) return Beginning::yes;
    if (colour.starts_with(text)) return Beginning::maybe;
  }
  return Beginning::no;
}

std::size_t plain_beginning(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::find_if(text, [](char c) { return c < ' ' || c > '~' || c == '#'; }) -
      text.begin());
}

}  // namespace

std::string VisibleText::add(std::string_view text, Rest rest) {
  held_ += text;
  std::string safe;
  std::string_view left = held_;
  while (!left.empty() && take_one(left, safe, rest)) {
  }
  held_.erase(0, held_.size() - left.size());
  return safe;
}

bool VisibleText::take_one(std::string_view& text, std::string& safe, Rest rest) {
  const auto take = [&](std::size_t length) {
    safe += text.substr(0, length);
    text.remove_prefix(length);
  };
  if (!at_line_start_) take(plain_beginning(text));
  if (text.empty()) return false;
  const bool more_comes = rest == Rest::comes_later;
  if (shows_.colours && text.front() == '\x1b') {
    const Beginning colour = beginning_of_colour(text);
    if (colour == Beginning::maybe && more_comes) return false;
    if (colour == Beginning::yes) {
      take(text.find('m') + 1);
      return true;
    }
  }
  const Beginning command = beginning_of_command(text, at_line_start_);
  if (command == Beginning::maybe && more_comes) return false;
  if (command == Beginning::yes) {
    safe += escaped(static_cast<unsigned char>(text.front()));
    text.remove_prefix(1);
    at_line_start_ = false;
    return true;
  }
  if (more_comes && may_be_cut(text)) return false;
  const std::size_t length = length_of_first(text);
  const std::uint32_t code =
      length == 0 ? static_cast<unsigned char>(text.front()) : code_point(text.substr(0, length));
  const bool ends_line = shows_.lines && code == '\n';
  at_line_start_ = ends_line || (at_line_start_ && code == ' ');
  if (length == 0 || (is_invisible(code) && !ends_line)) {
    safe += escaped(code);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  } else {
    take(length);
  }
  return true;
}

std::string one_line(std::string_view text) {
  return VisibleText({}).add(text, VisibleText::Rest::none);
}

std::string visible_lines(std::string_view text) {
  return VisibleText({.lines = true}).add(text, VisibleText::Rest::none);
}

std::string visible_json(std::string text) {
  if (std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '#'; }))
    return text;
  std::string safe;
  for (std::string_view left = text; !left.empty();) {
    const std::size_t length = std::max<std::size_t>(length_of_first(left), 1);
    const std::uint32_t code = code_point(left.substr(0, length));
    if (beginning_of_command(left, false) == Beginning::yes ||
        (code != '\n' && is_invisible(code))) {
      for (const std::uint32_t unit : utf16(code)) safe += fmt::format("\\u{:04x}", unit);
    } else {
      safe += left.substr(0, length);
    }
    left.remove_prefix(length);
  }
  return safe;
}

std::string beginning_of(const std::string& text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  std::size_t length = most_bytes;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  return text.substr(0, length) + "\u2026";
}

}  // namespace stepgate
