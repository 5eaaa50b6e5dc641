// SPDX-License-Identifier: MIT
#include "base/stats/tail_counts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/random.h"
#include "base/stats/e_process.h"

namespace stepgate {
namespace {

// Values of about 1, a share of which is longer by a fixed amount.
struct Steps {
  double body = 1;
  double spike_share = 0;
  double spike = 0;
};

std::vector<double> drawn(const Steps& steps, std::size_t count, Random& random) {
  std::vector<double> values(count);
  for (double& value : values) {
    value = steps.body * (1 + 0.01 * random.normal());
    if (random.uniform() < steps.spike_share) value += steps.spike * (1 + 0.05 * random.normal());
  }
  return values;
}

double percentile_of(const Steps& steps, double percentile) {
  Random random(1);
  TailCounts counts(percentile);
  counts.add(drawn(steps, 200'000, random), std::vector<double>{1});
  return counts.left_percentile();
}

enum class Found { less, more, neither };

// Whether some rounds show that the left percentile is less than, or more than, `factor` times the
// right one, at 1 / 20 and 1 / 100.
Found found(const Steps& left, const Steps& right, double percentile, double factor, int rounds,
            Random& random) {
  const auto steps = static_cast<std::size_t>(std::ceil(3 / (1 - percentile)));
  TailCounts counts(percentile, factor);
  EProcess above(Direction::above, 0);
  EProcess below(Direction::below, 0);
  for (int round = 0; round < rounds; ++round) {
    const double contrast = counts.add(drawn(left, steps, random), drawn(right, steps, random));
    above.bet(contrast, 1);
    below.bet(contrast, 1);
    if (above.value() >= 100) return Found::more;
    if (below.value() >= 20) return Found::less;
  }
  return Found::neither;
}

struct Shares {
  double less = 0;
  double more = 0;
};

Shares shares_of(const Steps& left, const Steps& right, double percentile, double times_limit,
                 int gates) {
  const double factor =
      percentile_of(left, percentile) / percentile_of(right, percentile) / times_limit;
  Random random(7);
  Shares shares;
  for (int gate = 0; gate < gates; ++gate) {
    const Found what = found(left, right, percentile, factor, 25, random);
    if (what == Found::less) shares.less += 1.0 / gates;
    if (what == Found::more) shares.more += 1.0 / gates;
  }
  return shares;
}

struct TailCase {
  const char* name;
  double percentile;
  Steps left;
  Steps right;
};

const TailCase tail_cases[]{
    {"SpikesOfEqualShare", 0.99, {1, 0.03, 2}, {1, 0.03, 1}},
    {"ManySmallAgainstFewLarge", 0.99, {1, 0.08, 0.5}, {1, 0.015, 3}},
    {"FewLargeAgainstManySmall", 0.99, {1, 0.02, 3}, {1, 0.08, 0.5}},
    {"SpikesRarerThanThePercentile", 0.99, {1.2, 0.005, 5}, {1, 0.005, 1}},
    {"SpikesOnOneSideAlone", 0.95, {1, 0.08, 1}, {1, 0, 0}},
    {"P95OfRareSpikes", 0.95, {1, 0.02, 9}, {1.1, 0.005, 9}},
};

// Near the margin the error rates are kept, whatever the shape of the tails.
TEST(TailCounts, KeepTheRatesBesideTheLimit) {
  constexpr int gates = 100;
  for (const TailCase& one : tail_cases) {
    for (const double true_at : {0.9, 0.98}) {
      const Shares shares = shares_of(one.left, one.right, one.percentile, true_at, gates);
      EXPECT_LE(shares.more, 0.01 + 3 * std::sqrt(0.01 / gates)) << one.name << " " << true_at;
    }
    for (const double false_at : {1.02, 1.1}) {
      const Shares shares = shares_of(one.left, one.right, one.percentile, false_at, gates);
      EXPECT_LE(shares.less, 0.05 + 3 * std::sqrt(0.05 / gates)) << one.name << " " << false_at;
    }
  }
}

TEST(TailCounts, FindWhatIsTwiceAndHalfTheLimit) {
  for (const TailCase& one : tail_cases) {
    EXPECT_GE(shares_of(one.left, one.right, one.percentile, 0.5, 60).less, 0.9) << one.name;
    EXPECT_GE(shares_of(one.left, one.right, one.percentile, 2, 60).more, 0.9) << one.name;
  }
}

// Swapping the sides negates a contrast, bit for bit.
TEST(TailCounts, AreSymmetric) {
  Random random(3);
  TailCounts one(0.95);
  TailCounts other(0.95);
  for (int round = 0; round < 20; ++round) {
    const auto left = drawn({1, 0.05, 1}, 60, random);
    const auto right = drawn({1, 0.02, 2}, 60, random);
    EXPECT_EQ(one.add(left, right), -other.add(right, left));
  }
}

// With a coarse clock most values are equal, and those at the threshold count in part.
TEST(TailCounts, CountEqualValuesInPart) {
  TailCounts counts(0.95, 1.1);
  const std::vector<double> same(60, 1.0);
  EXPECT_LT(counts.add(same, same), -2);
  TailCounts tie(0.95);
  EXPECT_EQ(tie.add(same, same), 0);
}

TEST(TailCounts, HaveAnIntervalThatContainsTheTruth) {
  const TailCase& one = tail_cases[0];
  const double truth =
      percentile_of(one.left, one.percentile) / percentile_of(one.right, one.percentile);
  Random random(5);
  int contain = 0;
  for (int gate = 0; gate < 40; ++gate) {
    TailCounts counts(one.percentile);
    for (int round = 0; round < 10; ++round)
      counts.add(drawn(one.left, 300, random), drawn(one.right, 300, random));
    const TailCounts::Interval interval = counts.interval(0.05);
    ASSERT_TRUE(interval.low && interval.high);
    if (*interval.low <= truth && truth <= *interval.high) ++contain;
  }
  EXPECT_GE(contain, 36);
}

TEST(TailCounts, OfFewRoundsHaveNoInterval) {
  Random random(5);
  TailCounts counts(0.95);
  counts.add(drawn({}, 60, random), drawn({}, 60, random));
  EXPECT_FALSE(counts.interval(0.05).low);
  EXPECT_FALSE(counts.interval(0.05).high);
}

}  // namespace
}  // namespace stepgate
