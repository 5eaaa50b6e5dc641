// SPDX-License-Identifier: MIT
// Assertions about words and lists that say what there was instead.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

inline testing::AssertionResult contains(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in '" << text << "'";
}

inline testing::AssertionResult contains(const std::vector<std::string>& all,
                                         std::string_view one) {
  if (std::ranges::find(all, one) != all.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << one << "' is not in " << testing::PrintToString(all);
}

}  // namespace stepgate
