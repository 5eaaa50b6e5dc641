// SPDX-License-Identifier: MIT
// Tests the doubts that leave a comparison undecided whatever its e-values: each with a fault, and
// the false alarm rate without any.
#include "judge/assertions/doubts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "judge/testing/fake_scenario.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// Parameters of an artificial measurement: ten segments for each variant and round, of ten steps of
// 1 ms, a fifth of them after a step of the same variant. All values are logarithms.
struct Made {
  std::vector<double> contrasts;  // log(fix / baseline) of the rounds
  double own = 0;                 // added to steps of the fix that follow the fix
  double noise = 0.001;           // standard deviation of `own`
  double host_share = 0.5;        // host time / step time of the fix

  Measurement measurement(Random& random) const {
    Measurement made;
    made.variants = {{.name = "baseline"}, {.name = "fix"}};
    for (MeasuredVariant& variant : made.variants) variant.segment_steps = 100;
    const auto of_steps = [](double logarithm, double steps) {
      return nanoseconds(std::llround(1e6 * steps * std::exp(logarithm)));
    };
    for (const double contrast : contrasts) {
      Round round;
      for (int variant = 0; variant < 2; ++variant) {
        const double slow = variant == 1 ? contrast : 0;
        const double busy = variant == 1 ? std::log(host_share) : std::log(0.5);
        const double behind = (variant == 1 ? own : 0) + noise * random.normal();
        round.segments.push_back({.variant = variant,
                                  .steps = 100,
                                  .elapsed = of_steps(slow, 100),
                                  .host_busy = of_steps(slow + busy, 100),
                                  .own_steps = 20,
                                  .own_elapsed = of_steps(slow + behind, 20)});
      }
      made.rounds.push_back(std::move(round));
    }
    return made;
  }
};

// Returns the doubt about fix.step_ms_mean <= limit * baseline.step_ms_mean, and checks that the
// equivalent assertion of a rate gives the same.
std::string doubt(const Made& made, double limit, Random& random,
                  const std::vector<Subject>& subjects = subjects_named({"baseline", "fix"})) {
  TimedEvidence evidence;
  double sum = 0;
  for (const double contrast : made.contrasts) {
    evidence.contrasts.push_back(contrast - std::log(limit));
    sum += evidence.contrasts.back();
  }
  evidence.ratio = std::exp(sum / static_cast<double>(made.contrasts.size()));
  const Measurement measured = made.measurement(random);
  const auto of_time =
      doubt_about(fix_against_baseline(Metric::step_ms_mean, Relation::at_most, limit), subjects,
                  measured, evidence);
  for (double& contrast : evidence.contrasts) contrast = -contrast;
  evidence.ratio = 1 / evidence.ratio;
  const auto of_rate =
      doubt_about(fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1 / limit),
                  subjects, measured, evidence);
  EXPECT_EQ(of_time.has_value(), of_rate.has_value());
  return of_time.value_or("");
}

std::vector<double> white(std::size_t rounds, Random& random, double deviation = 0.002) {
  std::vector<double> contrasts(rounds);
  for (double& contrast : contrasts) contrast = deviation * random.normal();
  return contrasts;
}

TEST(Doubts, AreThereWhereWhatAVariantLeavesBehindBringsTheLimitNearer) {
  Random random(1);
  const std::vector<double> contrasts = white(8, random);
  EXPECT_NE(doubt({.contrasts = contrasts, .own = 0.03}, 1.05, random)
                .find("'fix' and 'baseline' disturb each other"),
            std::string::npos);
  EXPECT_EQ(doubt({.contrasts = contrasts, .own = -0.03}, 1.05, random), "")
      << "alone it would be further away";
  EXPECT_EQ(doubt({.contrasts = contrasts, .own = 0.02}, 1.05, random), "")
      << "two fifths of the distance";
  EXPECT_EQ(doubt({.contrasts = contrasts, .own = 0.03, .noise = 0.07}, 1.05, random), "")
      << "lost in noise";
}

// Alone, the fix would take as long as its host time: 4 % more, which is four fifths of the
// distance to the limit.
TEST(Doubts, AreThereWhereTheHostWorksAheadInTheTimeOfTheOther) {
  Random random(1);
  const std::vector<double> contrasts = white(8, random);
  EXPECT_NE(doubt({.contrasts = contrasts, .host_share = 1.04}, 1.05, random)
                .find("the host issued steps of 'fix' while the device was at those of 'baseline'"),
            std::string::npos);
  EXPECT_EQ(doubt({.contrasts = contrasts, .host_share = 1.02}, 1.05, random), "")
      << "two fifths of the way";
  EXPECT_EQ(doubt({.contrasts = contrasts, .host_share = 0.9}, 1.05, random), "");
}

TEST(Doubts, AreThereWhereTheRatioChangesInTheMiddle) {
  Random random(2);
  std::vector<double> contrasts = white(30, random);
  EXPECT_EQ(doubt({.contrasts = contrasts}, 1.01, random), "");
  for (std::size_t round = 15; round < 30; ++round) contrasts[round] += 0.01;
  EXPECT_NE(
      doubt({.contrasts = contrasts}, 1.02, random).find("the ratio changed during the run, from"),
      std::string::npos);
  EXPECT_EQ(doubt({.contrasts = contrasts}, 1.05, random), "") << "far from the limit all the time";
}

TEST(Doubts, AreThereWhereTheRatioWanders) {
  Random random(3);
  std::vector<double> contrasts;
  for (int round = 0; round < 60; ++round) {
    contrasts.push_back(0.01 * std::sin(round / 3.0) + 0.001 * random.normal());
  }
  EXPECT_NE(doubt({.contrasts = contrasts}, 1.01, random).find("the ratio wandered"),
            std::string::npos);
  EXPECT_EQ(doubt({.contrasts = contrasts}, 1.05, random), "") << "far from the limit all the time";
}

TEST(Doubts, AreThereWhereSegmentsHoldNoWholePeriodOfWhatCostsMuch) {
  Random random(4);
  std::vector<Subject> subjects = subjects_named({"baseline", "fix"});
  subjects[1].periodic = {{.name = "evaluate", .every = 700, .rough_seconds = 0.03}};  // 4 %
  const Made made{.contrasts = white(8, random)};
  const std::string reason = doubt(made, 1.05, random, subjects);
  EXPECT_NE(reason.find("'evaluate' of 'fix' happens every 700 steps and a segment holds 100"),
            std::string::npos)
      << reason;
  EXPECT_NE(reason.find("'measure.steps = 700' would cover it"), std::string::npos) << reason;
  subjects[1].periodic[0].every = 50;
  EXPECT_EQ(doubt(made, 1.05, random, subjects), "") << "two whole periods";
  subjects[1].periodic = {{.name = "log", .every = 700, .rough_seconds = 7e-4}};  // 0.1 %
  EXPECT_EQ(doubt(made, 1.05, random, subjects), "") << "a fiftieth of the distance";
}

std::vector<Subject> restarting(std::size_t variant, std::int64_t every) {
  std::vector<Subject> subjects = subjects_named({"baseline", "fix"});
  subjects[variant].periodic = {{.name = "start of the loader's workers",
                                 .every = every,
                                 .rough_seconds = 4e-5 * static_cast<double>(every)}};  // 4 %
  return subjects;
}

TEST(Doubts, AreThereWhereTheWorkersOfALoaderStartMoreRarelyThanASegmentShows) {
  Random random(4);
  const Made made{.contrasts = white(8, random)};
  for (const std::int64_t every : {130, 400, 1500, 5000}) {
    EXPECT_NE(doubt(made, 1.05, random, restarting(1, every))
                  .find(fmt::format("'start of the loader's workers' of 'fix' happens every {} "
                                    "steps and a segment holds 100",
                                    every)),
              std::string::npos);
  }
  EXPECT_EQ(doubt(made, 1.05, random, restarting(1, 50)), "");
  EXPECT_EQ(doubt(made, 1.05, random, restarting(0, 400)), "")
      << "with it the limit would be further away";
  EXPECT_NE(doubt(made, 0.95, random, restarting(0, 400)), "") << "but not one on the other side";
}

TEST(Doubts, OfRareWorkAreThereOfALevelTooButNotOfAPercentileThatDoesNotSeeIt) {
  Random random(4);
  const Measurement measured = Made{.contrasts = white(8, random)}.measurement(random);
  const auto doubts = [&](Metric metric, std::int64_t every, double ratio) {
    return doubt_about_rare_work(
               assertion("level", {{of("fix", metric)}}, Relation::at_most, {{1e-3}}),
               restarting(1, every), measured, ratio)
        .has_value();
  };
  EXPECT_TRUE(doubts(Metric::step_ms_mean, 1500, 0.97));
  EXPECT_FALSE(doubts(Metric::step_ms_mean, 1500, 1.03)) << "it is beyond the limit as it is";
  EXPECT_FALSE(doubts(Metric::step_ms_mean, 1500, 0.5)) << "it is far from it";
  EXPECT_FALSE(doubts(Metric::step_ms_p50, 1500, 0.97));
  EXPECT_FALSE(doubts(Metric::step_ms_p99, 1500, 0.97));
  EXPECT_TRUE(doubts(Metric::step_ms_p99, 300, 0.97)) << "a third of the steps beyond it";
}

TEST(Doubts, AreSeldomWhereThereIsNothing) {
  Random random(5);
  constexpr int gates = 4000;
  int doubts = 0;
  for (int gate = 0; gate < gates; ++gate) {
    doubts += doubt({.contrasts = white(24, random)}, 1.0005, random) != "";
  }
  // Three tests are made at 0.1 % each, the first of them one-sided.
  const double rate = 0.0025;
  EXPECT_LE(doubts, gates * rate + 3 * std::sqrt(gates * rate));
}

}  // namespace
}  // namespace stepgate
