// SPDX-License-Identifier: MIT
// Decodes by the table of RFC 3629, section 4.
#include "base/text/utf8.h"

#include <algorithm>
#include <cstdint>

namespace stepgate {
namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;  // 0xc0 and 0xc1 would be overlong
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

// Length of the valid code point at the beginning, or 0 if it is not valid.
std::size_t valid_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = sequence_length(lead);
  if (length <= 1) return length;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second >= 0xa0;
  const bool past_the_last = lead == 0xf4 && second >= 0x90;
  return overlong || surrogate || past_the_last ? 0 : length;
}

}  // namespace

std::optional<TextPosition> first_bad_utf8(std::string_view text) {
  TextPosition position;
  while (!text.empty()) {
    const std::size_t length = valid_length(text);
    if (length == 0) return position;
    if (text.front() == '\n') {
      ++position.line;
      position.column = 1;
    } else {
      ++position.column;
    }
    text.remove_prefix(length);
  }
  return std::nullopt;
}

int count_code_points(std::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

Utf8Lines::Utf8Lines(std::string_view text) {
  while (true) {
    const std::size_t end = text.find('\n');
    lines_.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::string_view Utf8Lines::from(int line, int column) const {
  if (line < 1 || static_cast<std::size_t>(line) > lines_.size()) return {};
  std::string_view rest = lines_[static_cast<std::size_t>(line) - 1];
  for (int skipped = 1; skipped < column && !rest.empty(); ++skipped) {
    rest.remove_prefix(1);
    while (!rest.empty() && is_continuation(rest.front())) rest.remove_prefix(1);
  }
  return rest;
}

}  // namespace stepgate
