// SPDX-License-Identifier: MIT
#include "program/matching_names.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <regex>
#include <string_view>

namespace stepgate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

// Every pair of its types is twice as long as the one before: 2 to the power of 60 letters.
std::string symbol_that_grows() {
  constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string symbol = "_Z1fI1AIiiE";
  for (std::size_t pair = 1; pair < 60; ++pair) {
    std::string last = "S";
    if (pair >= digits.size()) last += digits[pair / digits.size()];
    last += digits[pair % digits.size()];
    last += "_";
    symbol += "S0_I" + last + last + "E";
  }
  return symbol + "Evv";
}

TEST(MatchingNames, AreThoseInWhoseReadableNameTheExpressionIsFound) {
  const auto found =
      matching_names({"_ZN8stepgate5scaleIfEEvPT_l", "sm90_gemm", "_ZN8stepgate5twiceEPfl", ""},
                     "scale<|gemm", Clock::now() + seconds(60));
  EXPECT_EQ(found, (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(matching_names({}, "x", Clock::now()), std::vector<bool>());
  EXPECT_THROW(matching_names({"a"}, "(", Clock::now()), std::regex_error);
}

TEST(MatchingNames, ASymbolThatGrowsWithoutBoundTakesNeitherTheMemoryNorTheTime) {
  const std::string grows = symbol_that_grows();
  ASSERT_LT(grows.size(), 1024U);
  const auto begin = Clock::now();
  EXPECT_EQ(matching_names({"sm90_gemm", grows}, "gemm", begin + seconds(300)), std::nullopt);
  EXPECT_LT(Clock::now() - begin, seconds(60));
  rusage children{};
  ASSERT_EQ(::getrusage(RUSAGE_CHILDREN, &children), 0);
  EXPECT_LT(children.ru_maxrss, 192 << 10);  // in KiB
}

TEST(MatchingNames, AnExpressionThatTakesForEverEndsAtTheDeadline) {
  const std::string name(1000, 'a');
  const auto begin = Clock::now();
  EXPECT_EQ(matching_names({name}, "(a+)+b", begin + seconds(1)), std::nullopt);
  EXPECT_LT(Clock::now() - begin, seconds(20));
}

}  // namespace
}  // namespace stepgate
