// SPDX-License-Identifier: MIT
// Kinds of characters, whatever the locale.
#pragma once

namespace stepgate {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr char small_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace stepgate
