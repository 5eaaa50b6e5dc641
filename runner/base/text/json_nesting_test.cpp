// SPDX-License-Identifier: MIT
#include "base/text/json_nesting.h"

#include <gtest/gtest.h>

#include <string>

namespace stepgate {
namespace {

std::string nested(int levels, const std::string& inside = "") {
  return std::string(static_cast<std::size_t>(levels), '[') + inside +
         std::string(static_cast<std::size_t>(levels), ']');
}

TEST(JsonNesting, IsCountedInLevelsAndNotInBrackets) {
  EXPECT_FALSE(nests_too_deep(nested(deepest_json)));
  EXPECT_TRUE(nests_too_deep(nested(deepest_json + 1)));
  EXPECT_TRUE(nests_too_deep(std::string(100000, '[')));
  std::string siblings = "[";
  for (int i = 0; i < 1000; ++i) siblings += "{},[],";
  EXPECT_FALSE(nests_too_deep(siblings + "1]"));
}

TEST(JsonNesting, IsNotThatOfBracketsInAString) {
  EXPECT_FALSE(nests_too_deep("{\"a\":\"" + std::string(100, '[') + "\"}"));
  EXPECT_FALSE(nests_too_deep("[\"\\\"" + std::string(100, '{') + "\"]"));
  EXPECT_TRUE(nests_too_deep("[\"\\\\\"," + nested(deepest_json) + "]"));
}

}  // namespace
}  // namespace stepgate
