// SPDX-License-Identifier: MIT
// Kinds of characters, whatever the locale.
#pragma once

namespace stepgate {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace stepgate
