// SPDX-License-Identifier: MIT
// Tests the error rates of an assertion's test, and what it reports when it is undecided.
#include "judge/assertions/timed_assertion.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <vector>

#include "base/interruption.h"
#include "base/random.h"
#include "judge/testing/fake_scenario.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

struct Rates {
  double passes = 0;
  double failed = 0;
};

// Returns outcomes over gates of 30 rounds, with normal contrasts around `centre` whose standard
// deviation is 1 %.
Rates rates_at(double centre, const Expectation& assertion, std::uint64_t seed) {
  constexpr int gates = 4000;
  Random random(seed);
  Rates rates;
  for (int gate = 0; gate < gates; ++gate) {
    TimedAssertion test(assertion, alpha, beta);
    for (int round = 0; round < 30; ++round) test.add(centre + 0.01 * random.normal());
    rates.passes += test.outcome() == Outcome::passes;
    rates.failed += test.outcome() == Outcome::fails;
  }
  return {rates.passes / gates, rates.failed / gates};
}

// Three standard errors of a rate that is estimated from 4000 gates.
constexpr double slack_at_alpha = 0.005;
constexpr double slack_at_beta = 0.011;

TEST(TimedAssertion, KeepsItsErrorRatesAtTheLimit) {
  SCOPED_TRACE("seed 17");
  const Rates rates =
      rates_at(0, fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1), 17);
  EXPECT_LE(rates.failed, alpha + slack_at_alpha);
  EXPECT_LE(rates.passes, beta + slack_at_beta);
}

TEST(TimedAssertion, DecidesAwayFromTheLimit) {
  SCOPED_TRACE("seed 18");
  const auto slower = fix_against_baseline(Metric::step_ms_mean, Relation::at_most, 1);
  EXPECT_GT(rates_at(-0.015, slower, 18).passes, 0.98);
  EXPECT_GT(rates_at(0.015, slower, 18).failed, 0.95);
}

TEST(TimedAssertion, KeepsItsErrorRatesAtBothEndsOfAbout) {
  SCOPED_TRACE("seed 19");
  const auto about = fix_against_baseline(Metric::step_ms_mean, Relation::about, 1, 0.03);
  for (const double end : {std::log(0.97), std::log(1.03)}) {
    const Rates rates = rates_at(end, about, 19);
    EXPECT_LE(rates.failed, alpha + slack_at_alpha);
    EXPECT_LE(rates.passes, beta + slack_at_beta);
  }
  EXPECT_GT(rates_at(0, about, 19).passes, 0.95);
  EXPECT_GT(rates_at(0.06, about, 19).failed, 0.95);
}

TEST(TimedAssertion, KeepsTheOutcomeThatItReachedFirst) {
  TimedAssertion test(fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1), alpha,
                      beta);
  for (int round = 0; round < 5; ++round) test.add(0.1);
  EXPECT_EQ(test.outcome(), Outcome::passes);
  for (int round = 0; round < 30; ++round) test.add(-0.1);
  EXPECT_EQ(test.outcome(), Outcome::passes);
  EXPECT_GE(test.evidence(0.95).evidence_for, 20);
}

TEST(TimedAssertion, EstimatesTheRoundsThatAreMissing) {
  TimedAssertion test(fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1), alpha,
                      beta);
  for (const double contrast : {0.01, -0.004, 0.012, 0.008, 0.009, -0.003}) {
    test.add(contrast);
  }
  ASSERT_EQ(test.outcome(), Outcome::undecided);
  const TimedEvidence evidence = test.evidence(0.95);
  ASSERT_TRUE(evidence.rounds_missing);
  EXPECT_GE(*evidence.rounds_missing, 1);
  EXPECT_LE(*evidence.rounds_missing, 500);
}

// The time for adding a round and for describing the result must not grow faster than the number of
// rounds.
TEST(TimedAssertion, IsQuickAndTheSameForTenThousandRounds) {
  Random random(5);
  TimedAssertion test(fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1), alpha,
                      beta);
  std::vector<double> contrasts(sanitized ? 1'000 : 10'000);
  for (double& contrast : contrasts) contrast = 0.01 * random.normal();
  const auto start = std::chrono::steady_clock::now();
  for (const double contrast : contrasts) test.add(contrast);
  const TimedEvidence evidence = test.evidence(0.95);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));  // takes 0.3 s
  const ConfidenceSequence interval = confidence_sequence(contrasts, 1 - 0.95);
  EXPECT_EQ(evidence.ratio, std::exp(interval.centre));
  EXPECT_EQ(evidence.interval.value().low, std::exp(interval.low.value()));
}

TEST(TimedAssertion, EndsWhatTakesAWhileOnASignal) {
  TimedAssertion test(fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1), alpha,
                      beta);
  test.add(0.01);
  interrupted = SIGINT;
  EXPECT_THROW((void)test.evidence(0.95), Interrupted);
  interrupted = 0;
}

TEST(TimedAssertion, SaysWhatChangeWouldHaveShown) {
  TimedAssertion test(fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1), alpha,
                      beta);
  for (const double contrast : {0.01, -0.008, 0.012, -0.01, 0.009, -0.011, 0.008, -0.009}) {
    test.add(contrast);
  }
  ASSERT_EQ(test.outcome(), Outcome::undecided);
  const TimedEvidence evidence = test.evidence(0.95);
  ASSERT_TRUE(evidence.smallest_seen);
  EXPECT_GT(*evidence.smallest_seen, 0.005);
  EXPECT_LT(*evidence.smallest_seen, 0.1);
}

}  // namespace
}  // namespace stepgate
