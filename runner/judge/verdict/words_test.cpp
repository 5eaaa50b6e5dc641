// SPDX-License-Identifier: MIT
// Tests numbers written as text.
#include "judge/verdict/words.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

TEST(Words, ScaleWithTheirUnit) {
  EXPECT_EQ(in_words(0.0012345, MetricUnit::seconds), "1.234 ms");
  EXPECT_EQ(in_words(152.5e-6, MetricUnit::seconds), "152.5 us");
  EXPECT_EQ(in_words(2e-9, MetricUnit::seconds), "2 ns");
  EXPECT_EQ(in_words(0, MetricUnit::seconds), "0 s");
  EXPECT_EQ(in_words(4 << 20, MetricUnit::bytes), "4 MiB");
  EXPECT_EQ(in_words(100, MetricUnit::bytes), "100 B");
  EXPECT_EQ(in_words(0.341, MetricUnit::ratio), "34.1 %");
  EXPECT_EQ(in_words(88520, MetricUnit::per_second), "88.52k/s");
  EXPECT_EQ(in_words(55.5e9, MetricUnit::bytes_per_second), "55.5 GB/s");
  EXPECT_EQ(in_words(12, MetricUnit::count), "12");
}

// A gate reads the outcomes of its BASE, which may be an older build.
TEST(Words, ReadOutcomesOfOlderBuilds) {
  EXPECT_EQ(outcome_in("holds"), Outcome::passes);
  EXPECT_EQ(outcome_in("refuted"), Outcome::fails);
  EXPECT_EQ(outcome_in("passes"), Outcome::passes);
  EXPECT_EQ(outcome_in("fails"), Outcome::fails);
  EXPECT_EQ(outcome_in("passed"), std::nullopt);
}

TEST(Words, SayWhatAnAssertionDoes) {
  EXPECT_EQ(predicate_of(Outcome::passes), "passes");
  EXPECT_EQ(predicate_of(Outcome::machine_slower), "is machine slower");
}

TEST(Words, RoundSharesToWhatAnAssertionNeeds) {
  EXPECT_EQ(share_in_words(0.999), "100 %");
  EXPECT_EQ(share_in_words(0.2349), "23 %");
  EXPECT_EQ(share_in_words(0.00908), "0.91 %");
  EXPECT_EQ(share_in_words(0), "0 %");
  EXPECT_EQ(growth_in_words(1.00361), "+0.36 %");
  EXPECT_EQ(growth_in_words(0.9689), "-3.1 %");
  EXPECT_EQ(growth_in_words(2.05), "+105 %");
  EXPECT_EQ(growth_in_words(62.69), "+6170 %");
  EXPECT_EQ(growth_in_words(1), "+0 %");
  EXPECT_EQ(in_words(1e-6, MetricUnit::ratio), "0 %") << "a traced share that is nothing";
  EXPECT_EQ(factor_in_words(200'000), "200000x");
}

TEST(Words, KeepTheDigitsThatTellANumberFromItsLimit) {
  EXPECT_EQ(told_from(1.1089, 1.11, factor_in_words), "1.109x");
  EXPECT_EQ(told_from(1.05004, 1.05, factor_in_words), "1.05004x");
  EXPECT_EQ(told_from(1.3, 1.05, factor_in_words), "1.30x");
  EXPECT_EQ(told_from(1.05, 1.05, factor_in_words), "1.050x");
  EXPECT_EQ(told_from(1.05 + 1e-15, 1.05, factor_in_words), "1.050x");
  EXPECT_EQ(factor_in_words(0.0012), "0.0012x");
  const Wording bytes = [](double value, int more) {
    return in_words(value, MetricUnit::bytes, more);
  };
  EXPECT_EQ(told_from(131'174, 131'178, bytes), "128.1 KiB")
      << in_words(131'178, MetricUnit::bytes, 3);
  EXPECT_NE(told_from(131'174, 131'178, bytes), told_from(131'178, 131'174, bytes));
  EXPECT_EQ(in_words(1'234'567, MetricUnit::count), "1234567");
}

TEST(Words, SayWithoutAnExponentWhatSomethingTakes) {
  EXPECT_EQ(seconds_in_words(183.2), "180 s");
  EXPECT_EQ(seconds_in_words(0.0123), "0.012 s");
}

TEST(Words, ShowMoreDigitsOfAFactorNearOne) {
  EXPECT_EQ(factor_in_words(1.3123), "1.31x");
  EXPECT_EQ(factor_in_words(1.0029), "1.003x");
  EXPECT_EQ(factor_in_words(0.5), "0.50x");
}

}  // namespace
}  // namespace stepgate
