// SPDX-License-Identifier: MIT
#include "duel/launches/duel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "duel/testing/fake_worker.h"
#include "support/random.h"

namespace stepgate {
namespace {

// Base takes a millisecond a step, head so many times that.
DuelScript steady(double ratio) {
  DuelScript script;
  script.step_seconds = [ratio](DuelSide side, const std::string&, std::int64_t) {
    return side == DuelSide::head ? 1e-3 * ratio : 1e-3;
  };
  return script;
}

TEST(Duel, MeasuresTheLogarithmOfHeadOverBase) {
  DuelScript script = steady(1.02);
  const DuelMeasurement measured = measure_duel(request_of(script, 1, 2));
  ASSERT_EQ(measured.pairs.size(), 2u);
  for (const LaunchPair& pair : measured.pairs) {
    for (const Superblock& block : pair.works.at(0).superblocks)
      EXPECT_NEAR(contrast_of(block), std::log(1.02), 1e-6);
  }
}

TEST(Duel, MirrorsEverySuperblockAndCancelsALinearDrift) {
  DuelScript script = steady(1);
  double drift = 1;
  script.step_seconds = [&](DuelSide, const std::string&, std::int64_t) {
    drift *= 1.01;
    return 1e-3 * drift;
  };
  const DuelMeasurement measured = measure_duel(request_of(script, 1, 3));
  for (const LaunchPair& pair : measured.pairs) {
    for (const Superblock& block : pair.works.at(0).superblocks) {
      EXPECT_EQ(block[0].side, block[3].side);
      EXPECT_EQ(block[1].side, block[2].side);
      EXPECT_NE(block[0].side, block[1].side);
      EXPECT_NEAR(contrast_of(block), 0, 1e-6);
    }
  }
}

TEST(Duel, TossesAFairCoinForEveryPairAndEverySuperblock) {
  const std::uint64_t seed = 20261121;
  SCOPED_TRACE("seed " + std::to_string(seed));
  DuelScript script = steady(1);
  constexpr int pairs = 1000;
  const DuelMeasurement measured = measure_duel(request_of(script, seed, pairs));
  int base_first = 0;
  int base_outside = 0;
  int superblocks = 0;
  int agree = 0;
  for (const LaunchPair& pair : measured.pairs) {
    base_first += pair.first == DuelSide::base;
    for (const Superblock& block : pair.works.at(0).superblocks) {
      ++superblocks;
      base_outside += block[0].side == DuelSide::base;
      agree += block[0].side == pair.first;
    }
  }
  // Five standard deviations of a fair coin.
  EXPECT_NEAR(base_first, 0.5 * pairs, 2.5 * std::sqrt(pairs));
  EXPECT_NEAR(base_outside, 0.5 * superblocks, 2.5 * std::sqrt(superblocks));
  EXPECT_NEAR(agree, 0.5 * superblocks, 2.5 * std::sqrt(superblocks));
}

TEST(Duel, LaunchesFreshProcessesOfBothSidesForEveryPairInTheTossedOrder) {
  DuelScript script = steady(1);
  const DuelRequest request = request_of(script, 7, 5);
  script.launches.clear();
  const DuelMeasurement measured = measure_duel(request);
  ASSERT_EQ(script.launches.size(), 10u);
  for (std::size_t pair = 0; pair < 5; ++pair) {
    EXPECT_EQ(script.launches[2 * pair], measured.pairs[pair].first);
    EXPECT_NE(script.launches[2 * pair], script.launches[2 * pair + 1]);
  }
}

TEST(Duel, GivesSegmentsTwentyMillisecondsOfTheFasterSideAndBothTheSameSteps) {
  DuelScript script = steady(2);
  const DuelMeasurement measured = measure_duel(request_of(script, 1, 1));
  for (const Superblock& block : measured.pairs.at(0).works.at(0).superblocks) {
    for (const DuelSegment& segment : block) EXPECT_EQ(segment.steps, 20);
  }
}

TEST(Duel, RunsWholePeriodsAndTheLongestWashOutThatASideAsksFor) {
  DuelScript script = steady(1);
  script.loaded = {
      .wash_out_steps = 9, .period_steps = 16, .periodic = {{.name = "log", .every = 16}}};
  const DuelMeasurement measured = measure_duel(request_of(script, 1, 1));
  EXPECT_EQ(measured.pairs.at(0).works.at(0).wash_out_steps, 9);
  EXPECT_EQ(measured.pairs.at(0).works.at(0).superblocks.at(0)[0].steps, 32);
  EXPECT_EQ(script.runs.back().second.wash_out_steps, 9);
  for (const auto& of_side : measured.pairs.at(0).works.at(0).periodic)
    EXPECT_EQ(of_side.at(0).every, 16);
}

TEST(Duel, DoesNotRunAStepOfSecondsMoreThanItMust) {
  DuelScript script = steady(1);
  script.step_seconds = [](DuelSide, const std::string&, std::int64_t) { return 2.0; };
  const DuelMeasurement measured = measure_duel(request_of(script, 1, 1));
  EXPECT_EQ(measured.pairs.at(0).works.at(0).superblocks.at(0)[0].steps, 3);
}

// Launches differ by 1 % and superblocks hardly: more superblocks a launch tell nothing new. What
// is between launches is estimated from twenty pairs, so single duels differ.
TEST(Duel, SpendsItsTimeWhereTheNoiseIs) {
  constexpr std::uint64_t duels = 40;
  const auto mean_superblocks_at_the_end = [&](double launch_noise, double segment_noise) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < duels; ++seed) {
      DuelScript script = steady(1);
      Random random(seed);
      std::vector<double> of_launch;
      script.step_seconds = [&](DuelSide, const std::string&, std::int64_t launch) {
        while (std::ssize(of_launch) <= launch)
          of_launch.push_back(std::exp(launch_noise * random.normal()));
        return 1e-3 * of_launch[static_cast<std::size_t>(launch)] *
               std::exp(segment_noise * random.normal());
      };
      const DuelMeasurement measured = measure_duel(request_of(script, seed, 20));
      sum += static_cast<double>(measured.pairs.back().works.at(0).superblocks.size());
    }
    return sum / static_cast<double>(duels);
  };
  EXPECT_LE(mean_superblocks_at_the_end(0.01, 0.0001), 1.1) << "seeds from 0";
  EXPECT_GE(mean_superblocks_at_the_end(0, 0.01), 5) << "seeds from 0";
}

TEST(Duel, LeavesOutWorksThatNeedNoMoreEvidence) {
  DuelScript script = steady(1);
  script.works = {"one", "two"};
  DuelRequest request = request_of(script, 1, 5);
  request.undecided = [](const DuelMeasurement& so_far) {
    return so_far.pairs.size() < 2   ? std::vector{0, 1}
           : so_far.pairs.size() < 4 ? std::vector{1}
                                     : std::vector<int>{};
  };
  const DuelMeasurement measured = measure_duel(request);
  ASSERT_EQ(measured.pairs.size(), 4u);
  EXPECT_EQ(measured.pairs[1].works.size(), 2u);
  ASSERT_EQ(measured.pairs[3].works.size(), 1u);
  EXPECT_EQ(measured.pairs[3].works[0].work, 1);
}

TEST(Duel, MakesTheFewestPairsHoweverLittlePatienceThereIs) {
  DuelScript script = steady(1);
  DuelRequest request = request_of(script, 1, 1000);
  request.fewest_pairs = 6;
  request.patience = std::chrono::seconds(1);
  EXPECT_EQ(measure_duel(request).pairs.size(), 6u);
  request.patience = std::chrono::seconds(60);
  const DuelMeasurement measured = measure_duel(request);
  EXPECT_TRUE(measured.budget_spent);
  EXPECT_GT(measured.pairs.size(), 6u);
  EXPECT_LE(measured.wall_time, std::chrono::seconds(60));
}

TEST(Duel, SpendsOneSuperblockAPairUntilAWorkNeedsMore) {
  DuelScript script = steady(1);
  DuelRequest request = request_of(script, 1, 12);
  request.fewest_pairs = 6;
  request.first_superblocks = 1;
  const DuelMeasurement measured = measure_duel(request);
  for (std::size_t pair = 0; pair < 9; ++pair)
    EXPECT_EQ(measured.pairs[pair].works[0].superblocks.size(), pair < 6 ? 1u : 2u) << pair;
}

TEST(Duel, LoadsUnloadsAndEndsBothSidesAtOnce) {
  DuelScript script = steady(1);
  DuelRequest request = request_of(script, 1, 1);
  measure_duel(request);
  EXPECT_EQ(script.asked_when_loaded, (std::vector<int>{2, 2}));
  EXPECT_EQ(script.asked_ahead, 6);
}

TEST(Duel, StartsAndLoadsSeveralPairsAtOnceAndTimesThemOneAfterTheOther) {
  DuelScript script = steady(1);
  DuelRequest request = request_of(script, 1, 5);
  request.pairs_at_once = [](std::int64_t done) { return done == 0 ? 3 : 9; };
  std::vector<std::size_t> looked;
  request.undecided = [&](const DuelMeasurement& so_far) {
    looked.push_back(so_far.pairs.size());
    return std::vector<int>{0};
  };
  script.launches.clear();
  measure_duel(request);
  EXPECT_EQ(looked, (std::vector<std::size_t>{0, 3, 5}));
  EXPECT_EQ(script.launches.size(), 10u);
  // Behind the first six loads as many were asked to unload and to quit.
  EXPECT_EQ(script.asked_when_loaded, (std::vector<int>{6, 6, 6, 6, 6, 6, 22, 22, 22, 22}));
}

TEST(Duel, RefusesAProgramThatChangesBetweenLaunches) {
  DuelScript script = steady(1);
  DuelRequest request = request_of(script, 1, 5);
  script.works.push_back("new work");
  EXPECT_THROW(measure_duel(request), WorkerError);
}

TEST(Duel, KeepsWholePairsWhenItIsStopped) {
  DuelScript script = steady(1);
  DuelRequest request = request_of(script, 1, 10);
  request.launch = [&script](DuelSide side, std::int64_t launch) -> std::unique_ptr<Worker> {
    if (launch == 7) throw WaitStopped();
    return std::make_unique<FakeWorker>(script, side, launch);
  };
  const DuelMeasurement measured = measure_duel(request);
  EXPECT_TRUE(measured.stopped);
  EXPECT_EQ(measured.pairs.size(), 2u);
}

}  // namespace
}  // namespace stepgate
