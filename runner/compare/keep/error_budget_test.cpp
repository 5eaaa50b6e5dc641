// SPDX-License-Identifier: MIT
// Tests the shares, and plays whole ledgers of candidates: identical ones are kept in at most 5 %
// of ledgers, a rule without a budget keeps some in nearly all, and a true gain is kept.
#include "compare/keep/error_budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "base/random.h"
#include "base/stats/e_process.h"
#include "base/stats/quantile.h"

namespace stepgate {
namespace {

constexpr double budget = 0.05;
constexpr double futility = 0.05;
constexpr double asked_gain = 0.005;
// The standard deviation of the log-ratio of a pair of launches.
constexpr double noise = 0.004;

struct PlayedLedger {
  bool is_kept = false;
  std::int64_t pairs = 0;
};

// Plays one candidate: pairs of launches until it is kept, shown not to reach the gain, or out of
// pairs.
PlayedLedger play(Random& random, double true_ratio, double gain, double level,
                  std::int64_t most_pairs) {
  const double margin = std::log1p(-gain);
  EProcess is_faster(Direction::below, margin);
  EProcess is_not(Direction::above, margin);
  RobustScale scale;
  for (std::int64_t pair = 1; pair <= most_pairs; ++pair) {
    const double contrast = std::log(true_ratio) + noise * random.normal();
    const double before = scale.value();
    scale.add(contrast);
    is_faster.bet(contrast, before);
    is_not.bet(contrast, before);
    if (is_faster.value() >= 1 / level) return {true, pair};
    if (is_not.value() >= 1 / futility) return {false, pair};
  }
  return {false, most_pairs};
}

// Returns how many of 400 ledgers ever keep one of 300 candidates that are BASE itself, where no
// gain is asked: the hardest case.
int ledgers_that_keep(const std::function<double(std::int64_t number)>& level) {
  constexpr int ledgers = 400;
  constexpr std::int64_t candidates = 300, pairs = 24;
  int keep = 0;
  for (int ledger = 0; ledger < ledgers; ++ledger) {
    Random random(static_cast<std::uint64_t>(ledger));
    for (std::int64_t number = 1; number <= candidates; ++number) {
      if (!play(random, 1, 0, level(number), pairs).is_kept) continue;
      ++keep;
      break;
    }
  }
  return keep;
}

TEST(ErrorBudget, SharesSumToOne) {
  constexpr std::int64_t many = 1'000'000;
  double sum = 0;
  for (std::int64_t number = 1; number <= many; ++number) sum += share_of_candidate(number);
  // The rest lies between the integrals that begin at the next share and half a candidate before.
  const double rest = share_of_candidate(1) * 2 * std::pow(std::log(2), 2) /
                      std::log(static_cast<double>(many) + 1.5);
  EXPECT_NEAR(sum + rest, 1, 1e-9);
  EXPECT_NEAR(budget_left(1, many, 0), rest, 1e-9);
  EXPECT_NEAR(share_of_candidate(1), 0.4933, 1e-4);
}

TEST(ErrorBudget, WhatWasKeptMakesLaterLevelsLarger) {
  EXPECT_DOUBLE_EQ(level_of_candidate(budget, 10, 0), budget * share_of_candidate(10));
  EXPECT_DOUBLE_EQ(level_of_candidate(budget, 10, 2), 3 * level_of_candidate(budget, 10, 0));
  EXPECT_DOUBLE_EQ(budget_left(budget, 10, 1), 2 * budget_left(budget, 10, 0));
  // Candidate 100 needs about three times the evidence of the first, in logarithms.
  const double first = -std::log(level_of_candidate(budget, 1, 0));
  const double late = -std::log(level_of_candidate(budget, 100, 0));
  EXPECT_NEAR(late / first, 3.1, 0.1);
}

TEST(ErrorBudget, IdenticalCandidatesAreKeptInFewLedgers) {
  const int keep =
      ledgers_that_keep([](std::int64_t number) { return level_of_candidate(budget, number, 0); });
  EXPECT_LE(keep, 20) << "of 400";
}

TEST(ErrorBudget, ARuleWithoutABudgetKeepsIdenticalCandidates) {
  EXPECT_GT(ledgers_that_keep([](std::int64_t) { return budget; }), 300) << "of 400";
}

struct Gains {
  int kept = 0;
  double pairs = 0;  // in the median of those kept
};

Gains gains_of(std::int64_t number) {
  constexpr int candidates = 200;
  constexpr std::int64_t pairs = 400;
  std::vector<double> needed;
  for (int candidate = 0; candidate < candidates; ++candidate) {
    Random random(1000 + static_cast<std::uint64_t>(candidate));
    const PlayedLedger played =
        play(random, 0.99, asked_gain, level_of_candidate(budget, number, 0), pairs);
    if (played.is_kept) needed.push_back(static_cast<double>(played.pairs));
  }
  return {static_cast<int>(needed.size()), quantile(needed, 0.5)};
}

// Where half a percent is asked, a gain of 1 % lies 1.25 times the noise of a pair beyond it.
TEST(ErrorBudget, ATrueGainIsKeptAsTheFirstCandidateAndAsAHundredth) {
  const Gains first = gains_of(1);
  const Gains late = gains_of(100);
  EXPECT_GE(first.kept, 190) << "of 200";
  EXPECT_GE(late.kept, 190) << "of 200";
  EXPECT_NEAR(first.pairs, 9, 2);
  EXPECT_NEAR(late.pairs, 27, 5);
}

}  // namespace
}  // namespace stepgate
