// SPDX-License-Identifier: MIT
// For fuzz targets only: finds in an output what a terminal or a CI system could take for something
// other than text. Its lists are its own, so that a fault in those of base/text is found.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stepgate {

struct CodePointRange {
  std::uint32_t first;
  std::uint32_t last;
};

// White space of .NET's Char.IsWhiteSpace and of Unicode's White_Space, which are the same, and the
// three characters that only older versions of .NET trim.
inline constexpr CodePointRange trimmed_by_runners[]{
    {0x09, 0x0d},     {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
    {0x1680, 0x1680}, {0x180e, 0x180e}, {0x2000, 0x200b}, {0x2028, 0x2029},
    {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
// Controls, marks of direction, and characters without width.
inline constexpr CodePointRange never_shown[]{{0x00, 0x09},     {0x0b, 0x1f},      {0x7f, 0x9f},
                                              {0xad, 0xad},     {0x61c, 0x61c},    {0x180e, 0x180e},
                                              {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
                                              {0xfeff, 0xfeff}, {0xe0000, 0xe007f}};

constexpr bool is_in(std::span<const CodePointRange> ranges, std::uint32_t code) {
  return std::ranges::any_of(ranges, [&](const CodePointRange& range) {
    return range.first <= code && code <= range.last;
  });
}

// Takes one character of UTF-8 from the front; nullopt where the text does not begin with one.
inline std::optional<std::uint32_t> next_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned lead = byte(0);
  const std::size_t more = lead < 0x80   ? 0
                           : lead < 0xc2 ? 4
                           : lead < 0xe0 ? 1
                           : lead < 0xf0 ? 2
                                         : 3;
  if (lead > 0xf4 || more == 4 || text.size() <= more) return std::nullopt;
  std::uint32_t code = more == 0 ? lead : lead & (0x3fU >> more);
  for (std::size_t at = 1; at <= more; ++at) {
    if ((byte(at) & 0xc0U) != 0x80U) return std::nullopt;
    code = code << 6U | (byte(at) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 4> least{0, 0x80, 0x800, 0x10000};
  if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return std::nullopt;
  text.remove_prefix(more + 1);
  return code;
}

// GitHub's runner trims a line and looks for "::" at its beginning; "##[", "##vso[" and the like
// are found anywhere.
inline bool is_command(std::string_view line) {
  for (std::string_view rest = line; !rest.empty();) {
    if (rest.starts_with("::")) return true;
    const auto code = next_code_point(rest);
    if (!code || !is_in(trimmed_by_runners, *code)) break;
  }
  for (std::size_t at = line.find("##"); at != std::string_view::npos;
       at = line.find("##", at + 1)) {
    const std::size_t end = std::min(
        line.size(),
        line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", at + 2));
    if (end < line.size() && line[end] == '[') return true;
  }
  return false;
}

// Says what is harmful, with its place; nullopt for an output without.
inline std::optional<std::string> harm_in(std::string_view output) {
  int number = 0;
  while (!output.empty()) {
    const std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(line.size() + 1, output.size()));
    const std::string place = " in line " + std::to_string(++number) + ": " + std::string(line);
    if (is_command(line)) return "a command" + place;
    const auto is_plain = [](char letter) { return letter >= ' ' && letter <= '~'; };
    for (std::string_view rest = line; !rest.empty();) {
      const auto* const other = std::ranges::find_if_not(rest, is_plain);
      rest.remove_prefix(static_cast<std::size_t>(other - rest.begin()));
      if (rest.empty()) break;
      const auto code = next_code_point(rest);
      if (!code) return "bytes that are not UTF-8" + place;
      if (is_in(never_shown, *code)) return "an invisible character" + place;
    }
  }
  return std::nullopt;
}

// Says why a text is no well-formed XML, by tags, quotes and entities; nullopt where it is.
inline std::optional<std::string> fault_of_xml(std::string_view text) {
  std::vector<std::string_view> open;
  const auto skip = [&](std::string_view until) {
    const std::size_t at = text.find(until);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + until.size());
    return at != std::string_view::npos;
  };
  while (!text.empty()) {
    const std::size_t at = text.find_first_of("<&");
    text.remove_prefix(std::min(at, text.size()));
    if (text.empty()) break;
    const std::string_view here = text.substr(0, 60);
    if (text.front() == '&') {
      const std::string_view name = text.substr(1, text.substr(0, 12).find(';') - 1);
      constexpr std::array<std::string_view, 4> known{"amp", "lt", "gt", "quot"};
      const bool is_number = name.starts_with('#') && name.size() > 1 &&
                             name.find_first_not_of("0123456789", 1) == std::string_view::npos;
      if (!is_number && std::ranges::find(known, name) == known.end())
        return "an entity: " + std::string(here);
      text.remove_prefix(name.size() + 2);
      continue;
    }
    if (text.starts_with("<?") || text.starts_with("<!DOCTYPE ")) {
      if (!skip(">")) return "no end of " + std::string(here);
      continue;
    }
    const bool closes = text.starts_with("</");
    text.remove_prefix(closes ? 2 : 1);
    const std::string_view name = text.substr(0, text.find_first_of(" />\n"));
    text.remove_prefix(name.size());
    while (text.starts_with(' ') || text.starts_with('\n')) {
      text.remove_prefix(text.find_first_not_of(" \n"));
      if (text.starts_with('/') || text.starts_with('>')) break;
      const std::string_view attribute = text.substr(0, text.find('='));
      if (attribute.find_first_of("<>\"& ") != std::string_view::npos ||
          attribute.starts_with("on"))
        return "an attribute: " + std::string(here);
      text.remove_prefix(std::min(attribute.size() + 1, text.size()));
      if (!text.starts_with('"')) return "an attribute without quotes: " + std::string(here);
      const std::size_t end = text.find('"', 1);
      if (end == std::string_view::npos ||
          text.substr(1, end - 1).find('<') != std::string_view::npos)
        return "a value of an attribute: " + std::string(here);
      text.remove_prefix(end + 1);
    }
    const bool is_empty = text.starts_with("/>");
    if (!is_empty && !text.starts_with('>')) return "a tag: " + std::string(here);
    text.remove_prefix(is_empty ? 2 : 1);
    if (closes) {
      if (open.empty() || open.back() != name) return "an end of another: " + std::string(here);
      open.pop_back();
    } else if (!is_empty) {
      constexpr std::array<std::string_view, 4> active{"script", "iframe", "object", "img"};
      if (std::ranges::find(active, name) != active.end()) return "a script: " + std::string(here);
      open.push_back(name);
    }
  }
  return open.empty() ? std::nullopt : std::optional("no end of " + std::string(open.back()));
}

}  // namespace stepgate
