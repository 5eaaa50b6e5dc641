// SPDX-License-Identifier: MIT
// Steps over strings and comments and looks at what is left. Where a string is malformed the
// parser stops before anything that is skipped wrongly here.
#include "support/toml/toml_guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/text/utf8.h"

namespace stepgate {
namespace {

constexpr int most_dots_in_a_line = 128;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

bool beyond_ascii(char byte) {
  return static_cast<unsigned char>(byte) >= 0x80;
}

class Guard {
 public:
  Guard(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::optional<Diagnostic> first_fault() {
    if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        if (auto found = fault_of_string(c)) return found;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        if (beyond_ascii(c))
          return fault("a character beyond ASCII outside quotes", "put it in quotes");
        if (c == '\n') dots_ = 0;
        if (c == '.' && ++dots_ > most_dots_in_a_line) {
          return fault(fmt::format("more than {} dots in one line", most_dots_in_a_line),
                       "break the line up");
        }
        ++at_;
      }
    }
    return std::nullopt;
  }

 private:
  // Goes past the string.
  std::optional<Diagnostic> fault_of_string(char quote) {
    const bool triple = text_.substr(at_).starts_with(std::string(3, quote));
    const std::string closing(triple ? 3 : 1, quote);
    at_ += closing.size();
    while (at_ < text_.size() && !text_.substr(at_).starts_with(closing)) {
      if (!triple && text_[at_] == '\n') return std::nullopt;
      const bool escape = quote == '"' && text_[at_] == '\\';
      if (escape && triple && beyond_ascii_follows_break(at_ + 1)) {
        return fault("a character beyond ASCII after a backslash that ends the line",
                     "put it on the line before");
      }
      at_ += escape ? 2 : 1;
    }
    at_ = std::min(at_ + closing.size(), text_.size());
    // Up to two quotes more may stand before the closing three.
    for (int more = 0; triple && more < 2 && text_.substr(at_).starts_with(quote); ++more) ++at_;
    return std::nullopt;
  }

  bool beyond_ascii_follows_break(std::size_t from) const {
    const std::size_t next = text_.find_first_not_of(" \t\r\n\v\f", from);
    return next != std::string_view::npos && next > from && beyond_ascii(text_[next]);
  }

  std::optional<Diagnostic> fault(std::string message, std::string hint) const {
    const std::string_view before = text_.substr(0, at_);
    const std::size_t line_end = before.rfind('\n');
    const std::size_t line_start = line_end == std::string_view::npos ? 0 : line_end + 1;
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    return Diagnostic{
        {file_, static_cast<int>(line), 1 + count_code_points(before.substr(line_start))},
        std::move(message),
        std::move(hint)};
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int dots_ = 0;
};

}  // namespace

std::optional<Diagnostic> unfit_for_parser(std::string_view text, const std::string& file) {
  return Guard(text, file).first_fault();
}

std::string in_ascii(std::string_view text) {
  std::string ascii;
  ascii.reserve(text.size());
  if (text.starts_with(byte_order_mark)) {
    ascii = byte_order_mark;
    text.remove_prefix(byte_order_mark.size());
  }
  for (const char byte : text) {
    const bool continues = (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
    if (!continues) ascii += beyond_ascii(byte) ? '~' : byte;
  }
  return ascii;
}

}  // namespace stepgate
