// SPDX-License-Identifier: MIT
#include "base/text/visible_text.h"

#include <fmt/format.h>

#include <cstdint>

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

// ASCII and Latin 1 controls, line and paragraph separators, marks and overrides of text direction,
// and code points that XML does not allow.
bool is_invisible(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200e && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
         code == 0xfeff || code == 0xfffe || code == 0xffff;
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
      return code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
  }
}

// Whether GitHub, Azure or TeamCity would take the text for a command.
bool begins_a_command(std::string_view text, bool at_line_start) {
  if (at_line_start && text.starts_with("::")) return true;
  return text.starts_with("##[") || text.starts_with("##vso[") || text.starts_with("##teamcity[");
}

std::string visible(std::string_view text, bool line_ends_stay) {
  std::string safe;
  bool at_line_start = true;
  while (!text.empty()) {
    if (begins_a_command(text, at_line_start)) {
      safe += escaped(static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      at_line_start = false;
      continue;
    }
    const std::size_t length = length_of_first(text);
    const std::uint32_t code =
        length == 0 ? static_cast<unsigned char>(text.front()) : code_point(text.substr(0, length));
    const bool stays = line_ends_stay && (code == '\n' || code == '\r');
    if (length == 0 || (is_invisible(code) && !stays)) {
      safe += escaped(code);
    } else {
      safe += text.substr(0, length);
    }
    at_line_start = stays || (at_line_start && code == ' ');
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return safe;
}

}  // namespace

std::string one_line(std::string_view text) {
  return visible(text, false);
}

std::string visible_lines(std::string_view text) {
  return visible(text, true);
}

std::string beginning_of(const std::string& text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  std::size_t length = most_bytes;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  return text.substr(0, length) + "\u2026";
}

}  // namespace stepgate
