// SPDX-License-Identifier: MIT
#include "base/text/number_words.h"

#include <gtest/gtest.h>

#include <limits>

namespace stepgate {
namespace {

TEST(NumberWords, HasNoExponentWhereAPersonCounts) {
  EXPECT_EQ(number_in_words(183.2, 2), "180");
  EXPECT_EQ(number_in_words(20552, 3), "20600");
  EXPECT_EQ(number_in_words(99.96, 3), "100");
  EXPECT_EQ(number_in_words(5141, 3), "5140");
  EXPECT_EQ(number_in_words(-183.2, 2), "-180");
  EXPECT_EQ(number_in_words(0.0000123, 2), "0.000012");
}

TEST(NumberWords, KeepsTheDigitsThatWereAskedFor) {
  EXPECT_EQ(number_in_words(1.75, 2), "1.8");
  EXPECT_EQ(number_in_words(0.9149, 2), "0.91");
  EXPECT_EQ(number_in_words(3.0, 3), "3");
  EXPECT_EQ(number_in_words(12.5, 3), "12.5");
  EXPECT_EQ(number_in_words(9.99, 2), "10");
  EXPECT_EQ(number_in_words(0, 3), "0");
}

TEST(NumberWords, TakesWhatIsNoNumber) {
  EXPECT_EQ(number_in_words(std::numeric_limits<double>::infinity(), 3), "inf");
  EXPECT_EQ(number_in_words(std::numeric_limits<double>::quiet_NaN(), 3), "nan");
  EXPECT_EQ(number_in_words(1e300, 3), "1e+300");
}

}  // namespace
}  // namespace stepgate
