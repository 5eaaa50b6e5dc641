// SPDX-License-Identifier: MIT
#include "base/toml/toml_text.h"

#include <fmt/format.h>

namespace stepgate {

std::string toml_string(std::string_view text) {
  std::string result(1, '"');
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c < ' ' || c > '~' ? '?' : c;
  }
  result += '"';
  return result;
}

std::string hexadecimal(std::uint64_t number) {
  return fmt::format("0x{:016x}", number);
}

}  // namespace stepgate
