// SPDX-License-Identifier: MIT
// For tests of this station: counts how often a text occurs in another.
#pragma once

#include <string>

namespace stepgate {

// Counts the occurrences of `part` in the text.
inline int times(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace stepgate
