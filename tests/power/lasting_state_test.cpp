// SPDX-License-Identifier: MIT
// Measures how often an assertion at its limit is wrongly decided when a state of one variant
// outlasts a round, another process uses the GPU, or the clock rate drops during a run, and how
// many of these decisions the doubts revoke. Rounds are artificial, as in rule_grid_test; every
// seed is fixed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>

#include "judge/assertion_test.h"
#include "judge/assertions/doubts.h"
#include "judge/testing/fake_scenario.h"
#include "measure/schedule.h"
#include "tests/contract/judged_on_device.h"

namespace stepgate {
namespace {

constexpr int gates = 500;
constexpr std::uint64_t first_seed = 900;
constexpr double limit = 0.004;  // the fix may take so much longer, in logarithms
constexpr double noise = 0.003;  // of a segment
constexpr int most_rounds = 60;
constexpr std::int64_t steps = 100;  // a segment

// Changes the log of a step's time in one segment.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual void begin_round(int) {}
  virtual double next(int variant) = 0;
};
using MakeSurroundings = std::function<std::unique_ptr<Surroundings>(Random)>;

// A state of the fix alone, from round to round.
class StateOfTheFix : public Surroundings {
 public:
  StateOfTheFix(Random random, double memory)
      : random_(random), memory_(memory), state_(deviation * random_.normal()) {}
  void begin_round(int) override {
    state_ = memory_ * state_ + deviation * std::sqrt(1 - memory_ * memory_) * random_.normal();
  }
  double next(int variant) override { return variant == 1 ? state_ : 0; }

 private:
  static constexpr double deviation = 0.0025;
  Random random_;
  double memory_;
  double state_;
};

// Another process uses the GPU for a while: in random segments, or in a dozen consecutive segments
// that may span rounds.
class Neighbour : public Surroundings {
 public:
  Neighbour(Random random, double comes, double leaves)
      : random_(random), comes_(comes), leaves_(leaves) {}
  double next(int) override {
    there_ = random_.uniform() < (there_ ? 1 - leaves_ : comes_);
    return there_ ? std::log1p(0.02 + 0.3 * random_.uniform()) : 0;
  }

 private:
  Random random_;
  double comes_;
  double leaves_;
  bool there_ = false;
};

// In some rounds, one variant is disturbed and the other is not: a random one or, if planted, the
// fix.
class InOneArm : public Surroundings {
 public:
  InOneArm(Random random, bool always_the_fix) : random_(random), always_the_fix_(always_the_fix) {}
  void begin_round(int) override {
    segment_ = 0;
    const bool disturbed = random_.uniform() < 0.3;
    slow_segment_ = disturbed ? static_cast<int>(random_.below(4)) : none;
    slow_ = std::log1p(0.02 + 0.3 * random_.uniform());
  }
  double next(int variant) override {
    if (always_the_fix_) return slow_segment_ != none && variant == 1 ? slow_ : 0;
    return segment_++ == slow_segment_ ? slow_ : 0;
  }

 private:
  static constexpr int none = -1;
  Random random_;
  bool always_the_fix_;
  int segment_ = 0;
  int slow_segment_ = none;
  double slow_ = 0;
};

// From the middle of a round, both variants are slower, and the fix by more, in logarithms.
class ClockDrop : public Surroundings {
 public:
  ClockDrop(int round, double more) : round_(round), more_(more) {}
  void begin_round(int round) override {
    segment_ = 0;
    this_round_ = round;
  }
  double next(int variant) override {
    const bool dropped = this_round_ > round_ || (this_round_ == round_ && segment_++ >= 1);
    return dropped ? std::log(1.15) + (variant == 1 ? more_ : 0) : 0;
  }

 private:
  int round_;
  double more_;
  int this_round_ = 0;
  int segment_ = 0;
};

Measurement nothing_yet() {
  Measurement made;
  made.variants = {{.name = "baseline"}, {.name = "fix"}};
  for (MeasuredVariant& variant : made.variants) variant.segment_steps = steps;
  return made;
}

// Returns a round of an order of segments and its mirror.
Round round_of(Surroundings& surroundings, double effect, Random& random) {
  Round round;
  const std::vector<int> slots = permutation(2, random);
  std::vector<int> order = permutation(2, random);
  for (int segment = 0; segment < 4; ++segment) {
    const int variant = order[static_cast<std::size_t>(segment < 2 ? segment : 3 - segment)];
    const double slow =
        (variant == 1 ? effect : 0) + surroundings.next(variant) + noise * random.normal();
    const std::chrono::nanoseconds elapsed(std::llround(1e6 * steps * std::exp(slow)));
    Segment made{.variant = variant,
                 .slot = slots[static_cast<std::size_t>(variant)],
                 .steps = steps,
                 .elapsed = elapsed};
    const bool follows_itself = segment == 0 || segment == 2;
    if (follows_itself) {
      made.own_steps = steps;
      made.own_elapsed = elapsed;
    }
    round.segments.push_back(std::move(made));
  }
  return round;
}

struct Shares {
  double failed = 0;
  double held = 0;
  double doubted = 0;  // of the decided ones, taken back
};

// Returns the outcomes of an assertion whose true difference is its limit plus `beyond`, with at
// least `least_rounds` rounds, as other assertions of the scenario may need them.
Shares shares_of(const MakeSurroundings& make, double beyond = 0, int least_rounds = 0) {
  static const Expectation assertion =
      fix_against_baseline(Metric::step_ms_mean, Relation::at_most, std::exp(limit));
  static const std::vector<Subject> subjects = subjects_named({"baseline", "fix"});
  static const JudgeSettings settings;
  static const EarlierRounds none;
  Shares shares;
  for (int gate = 0; gate < gates; ++gate) {
    const auto seed = first_seed + static_cast<std::uint64_t>(gate);
    const auto surroundings = make(Random(2 * seed));
    Random random(2 * seed + 1);
    AssertionTest test(assertion, subjects, settings, none);
    Measurement measurement = nothing_yet();
    for (int round = 0; round < most_rounds && (test.is_open() || round < least_rounds); ++round) {
      surroundings->begin_round(round);
      measurement.rounds.push_back(round_of(*surroundings, limit + beyond, random));
      test.add({.subjects = subjects, .round = &measurement.rounds.back()});
    }
    if (test.outcome() == Outcome::undecided) continue;
    AssertionVerdict verdict;
    test.describe(0.95, verdict);
    const bool doubted = doubt_about(assertion, subjects, measurement, *verdict.timed).has_value();
    shares.doubted += doubted;
    shares.failed += !doubted && verdict.outcome == Outcome::fails;
    shares.held += !doubted && verdict.outcome == Outcome::passes;
  }
  for (double* sum : {&shares.failed, &shares.held, &shares.doubted}) *sum /= gates;
  return shares;
}

void print_row(const std::string& what, const Shares& shares) {
  std::fputs(fmt::format("  {:<47} failed {:5.2f} %  held {:5.2f} %  doubted {:5.2f} %\n", what,
                         100 * shares.failed, 100 * shares.held, 100 * shares.doubted)
                 .c_str(),
             stdout);
}

MakeSurroundings neighbour(double comes, double leaves) {
  return [=](Random random) { return std::make_unique<Neighbour>(random, comes, leaves); };
}
MakeSurroundings in_one_arm(bool always_the_fix) {
  return [=](Random random) { return std::make_unique<InOneArm>(random, always_the_fix); };
}
MakeSurroundings clock_drop(int round, double more = 0) {
  return [=](Random) { return std::make_unique<ClockDrop>(round, more); };
}

void expect_promised_rates(const std::string& what, const Shares& shares) {
  print_row(what, shares);
  EXPECT_LE(shares.failed, most_of(gates, JudgeSettings{}.alpha)) << what;
  EXPECT_LE(shares.held, most_of(gates, JudgeSettings{}.beta)) << what;
}

// A state of one variant that lasts for a few rounds looks like an effect of the code, and
// randomisation does not help. From a memory of 0.6 on, the promised rates do NOT hold. Doubts need
// a dozen rounds and revoke almost nothing, since most of these gates end earlier. The rates below
// were measured, here and in docs/verdict.md; they may only decrease.
TEST(LastingState, OfOneVariantCostsTheRatesThatAreDocumented) {
  for (const DocumentedRates& row : {DocumentedRates{0.3, 0.014, 0.059},
                                     {0.6, 0.042, 0.109},
                                     {0.8, 0.132, 0.203},
                                     {0.95, 0.265, 0.338}}) {
    const Shares shares =
        shares_of([&](Random random) { return std::make_unique<StateOfTheFix>(random, row.size); });
    print_row(fmt::format("a state of the fix, AR(1) {:.2f}", row.size), shares);
    EXPECT_LE(shares.failed, most_of(gates, row.failed)) << row.size;
    EXPECT_LE(shares.held, most_of(gates, row.held)) << row.size;
  }
}

TEST(LastingState, ThatChangesTheRatioIsDoubtedWhereTheRoundsGoOn) {
  constexpr double change = 0.008;  // from as much within the limit to as much beyond it
  const auto changing = clock_drop(20, change);
  const Shares to_the_end = shares_of(changing, -change / 2, 40);
  print_row("the ratio crosses the limit in round 20 of 40", to_the_end);
  EXPECT_GE(to_the_end.doubted, 0.98);
  // A run that ends before the change only measures the time before it.
  const Shares decided = shares_of(changing, -change / 2);
  print_row("the same, at an end when it is decided", decided);
  EXPECT_LE(decided.failed, most_of(gates, JudgeSettings{}.alpha));
}

TEST(Disturbance, ThatComesToWhoeverRunsKeepsTheRates) {
  expect_promised_rates("another process in a tenth of the segments",
                        shares_of(neighbour(0.1, 0.9)));
  expect_promised_rates("another process for a dozen segments at a time",
                        shares_of(neighbour(0.03, 0.08)));
  expect_promised_rates("one segment of three rounds in ten", shares_of(in_one_arm(false)));
}

// This is the control for the rows above: only segments of the fix are disturbed.
TEST(Disturbance, OfOneVariantAloneIsThatVariants) {
  const Shares shares = shares_of(in_one_arm(true));
  print_row("both segments of the fix, three rounds in ten", shares);
  EXPECT_GT(shares.failed, most_of(gates, JudgeSettings{}.alpha));
}

TEST(Disturbance, OfTheClockInTheMiddleKeepsTheRates) {
  for (const int round : {3, 20}) {
    expect_promised_rates(fmt::format("a clock that drops by 15 % within round {}", round + 1),
                          shares_of(clock_drop(round)));
  }
}

}  // namespace
}  // namespace stepgate
