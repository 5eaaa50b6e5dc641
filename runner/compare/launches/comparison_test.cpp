// SPDX-License-Identifier: MIT
#include "compare/launches/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "compare/testing/fake_worker.h"

namespace stepgate {
namespace {

// BASE takes a millisecond per step and HEAD `ratio` times as long.
ComparisonScript steady(double ratio) {
  ComparisonScript script;
  script.step_seconds = [ratio](ComparisonSide side, const std::string&, std::int64_t) {
    return side == ComparisonSide::head ? 1e-3 * ratio : 1e-3;
  };
  return script;
}

TEST(Comparison, MeasuresTheLogarithmOfHeadOverBase) {
  ComparisonScript script = steady(1.02);
  const ComparisonMeasurement measured = measure_comparison(request_of(script, 1, 2));
  ASSERT_EQ(measured.pairs.size(), 2u);
  for (const LaunchPair& pair : measured.pairs) {
    for (const Superblock& block : pair.workloads.at(0).superblocks)
      EXPECT_NEAR(contrast_of(block), std::log(1.02), 1e-6);
  }
}

TEST(Comparison, MirrorsEverySuperblockAndCancelsALinearDrift) {
  ComparisonScript script = steady(1);
  double drift = 1;
  script.step_seconds = [&](ComparisonSide, const std::string&, std::int64_t) {
    drift *= 1.01;
    return 1e-3 * drift;
  };
  const ComparisonMeasurement measured = measure_comparison(request_of(script, 1, 3));
  for (const LaunchPair& pair : measured.pairs) {
    for (const Superblock& block : pair.workloads.at(0).superblocks) {
      EXPECT_EQ(block[0].side, block[3].side);
      EXPECT_EQ(block[1].side, block[2].side);
      EXPECT_NE(block[0].side, block[1].side);
      EXPECT_NEAR(contrast_of(block), 0, 1e-6);
    }
  }
}

TEST(Comparison, TossesAFairCoinForEveryPairAndEverySuperblock) {
  const std::uint64_t seed = 20261121;
  SCOPED_TRACE("seed " + std::to_string(seed));
  ComparisonScript script = steady(1);
  constexpr int pairs = 1000;
  const ComparisonMeasurement measured = measure_comparison(request_of(script, seed, pairs));
  int base_first = 0;
  int base_outside = 0;
  int superblocks = 0;
  int agree = 0;
  for (const LaunchPair& pair : measured.pairs) {
    base_first += pair.first == ComparisonSide::base;
    for (const Superblock& block : pair.workloads.at(0).superblocks) {
      ++superblocks;
      base_outside += block[0].side == ComparisonSide::base;
      agree += block[0].side == pair.first;
    }
  }
  // The tolerance is five standard deviations of a fair coin.
  EXPECT_NEAR(base_first, 0.5 * pairs, 2.5 * std::sqrt(pairs));
  EXPECT_NEAR(base_outside, 0.5 * superblocks, 2.5 * std::sqrt(superblocks));
  EXPECT_NEAR(agree, 0.5 * superblocks, 2.5 * std::sqrt(superblocks));
}

TEST(Comparison, LaunchesFreshProcessesOfBothSidesForEveryPairInTheTossedOrder) {
  ComparisonScript script = steady(1);
  const ComparisonRequest request = request_of(script, 7, 5);
  script.launches.clear();
  const ComparisonMeasurement measured = measure_comparison(request);
  ASSERT_EQ(script.launches.size(), 10u);
  for (std::size_t pair = 0; pair < 5; ++pair) {
    EXPECT_EQ(script.launches[2 * pair], measured.pairs[pair].first);
    EXPECT_NE(script.launches[2 * pair], script.launches[2 * pair + 1]);
  }
}

TEST(Comparison, GivesSegmentsTwentyMillisecondsOfTheFasterSideAndBothTheSameSteps) {
  ComparisonScript script = steady(2);
  const ComparisonMeasurement measured = measure_comparison(request_of(script, 1, 1));
  for (const Superblock& block : measured.pairs.at(0).workloads.at(0).superblocks) {
    for (const ComparisonSegment& segment : block) EXPECT_EQ(segment.steps, 20);
  }
}

TEST(Comparison, RunsWholePeriodsAndTheLongestWashOutThatASideAsksFor) {
  ComparisonScript script = steady(1);
  script.loaded = {
      .wash_out_steps = 9, .period_steps = 16, .periodic = {{.name = "log", .every = 16}}};
  const ComparisonMeasurement measured = measure_comparison(request_of(script, 1, 1));
  EXPECT_EQ(measured.pairs.at(0).workloads.at(0).wash_out_steps, 9);
  EXPECT_EQ(measured.pairs.at(0).workloads.at(0).superblocks.at(0)[0].steps, 32);
  EXPECT_EQ(script.runs.back().second.wash_out_steps, 9);
  for (const auto& of_side : measured.pairs.at(0).workloads.at(0).periodic)
    EXPECT_EQ(of_side.at(0).every, 16);
}

TEST(Comparison, DoesNotRunAStepOfSecondsMoreThanItMust) {
  ComparisonScript script = steady(1);
  script.step_seconds = [](ComparisonSide, const std::string&, std::int64_t) { return 2.0; };
  const ComparisonMeasurement measured = measure_comparison(request_of(script, 1, 1));
  EXPECT_EQ(measured.pairs.at(0).workloads.at(0).superblocks.at(0)[0].steps, 3);
}

// Launches differ by 1 % and superblocks hardly, so more superblocks per launch add no information.
// The variance between launches is estimated from twenty pairs, so single comparisons differ.
TEST(Comparison, SpendsItsTimeWhereTheNoiseIs) {
  constexpr std::uint64_t comparisons = 40;
  const auto mean_superblocks_at_the_end = [&](double launch_noise, double segment_noise) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < comparisons; ++seed) {
      ComparisonScript script = steady(1);
      Random random(seed);
      std::vector<double> of_launch;
      script.step_seconds = [&](ComparisonSide, const std::string&, std::int64_t launch) {
        while (std::ssize(of_launch) <= launch)
          of_launch.push_back(std::exp(launch_noise * random.normal()));
        return 1e-3 * of_launch[static_cast<std::size_t>(launch)] *
               std::exp(segment_noise * random.normal());
      };
      const ComparisonMeasurement measured = measure_comparison(request_of(script, seed, 20));
      sum += static_cast<double>(measured.pairs.back().workloads.at(0).superblocks.size());
    }
    return sum / static_cast<double>(comparisons);
  };
  EXPECT_LE(mean_superblocks_at_the_end(0.01, 0.0001), 1.1) << "seeds from 0";
  EXPECT_GE(mean_superblocks_at_the_end(0, 0.01), 5) << "seeds from 0";
}

TEST(Comparison, LeavesOutWorksThatNeedNoMoreEvidence) {
  ComparisonScript script = steady(1);
  script.workloads = {"one", "two"};
  ComparisonRequest request = request_of(script, 1, 5);
  request.undecided = [](const ComparisonMeasurement& so_far) {
    return so_far.pairs.size() < 2   ? std::vector{0, 1}
           : so_far.pairs.size() < 4 ? std::vector{1}
                                     : std::vector<int>{};
  };
  const ComparisonMeasurement measured = measure_comparison(request);
  ASSERT_EQ(measured.pairs.size(), 4u);
  EXPECT_EQ(measured.pairs[1].workloads.size(), 2u);
  ASSERT_EQ(measured.pairs[3].workloads.size(), 1u);
  EXPECT_EQ(measured.pairs[3].workloads[0].workload, 1);
}

TEST(Comparison, MakesTheFewestPairsHoweverLittlePatienceThereIs) {
  ComparisonScript script = steady(1);
  ComparisonRequest request = request_of(script, 1, 1000);
  request.fewest_pairs = 6;
  request.patience = std::chrono::seconds(1);
  EXPECT_EQ(measure_comparison(request).pairs.size(), 6u);
  request.patience = std::chrono::seconds(60);
  const ComparisonMeasurement measured = measure_comparison(request);
  EXPECT_TRUE(measured.budget_spent);
  EXPECT_GT(measured.pairs.size(), 6u);
  EXPECT_LE(measured.wall_time, std::chrono::seconds(60));
}

TEST(Comparison, SpendsOneSuperblockAPairUntilAWorkNeedsMore) {
  ComparisonScript script = steady(1);
  ComparisonRequest request = request_of(script, 1, 12);
  request.fewest_pairs = 6;
  request.first_superblocks = 1;
  const ComparisonMeasurement measured = measure_comparison(request);
  for (std::size_t pair = 0; pair < 9; ++pair)
    EXPECT_EQ(measured.pairs[pair].workloads[0].superblocks.size(), pair < 6 ? 1u : 2u) << pair;
}

TEST(Comparison, LoadsUnloadsAndEndsBothSidesAtOnce) {
  ComparisonScript script = steady(1);
  ComparisonRequest request = request_of(script, 1, 1);
  measure_comparison(request);
  EXPECT_EQ(script.asked_when_loaded, (std::vector<int>{2, 2}));
  EXPECT_EQ(script.asked_ahead, 6);
}

TEST(Comparison, StartsAndLoadsSeveralPairsAtOnceAndTimesThemOneAfterTheOther) {
  ComparisonScript script = steady(1);
  ComparisonRequest request = request_of(script, 1, 5);
  request.pairs_at_once = [](std::int64_t done, auto) { return done == 0 ? 3 : 9; };
  std::vector<std::size_t> looked;
  request.undecided = [&](const ComparisonMeasurement& so_far) {
    looked.push_back(so_far.pairs.size());
    return std::vector<int>{0};
  };
  script.launches.clear();
  measure_comparison(request);
  EXPECT_EQ(looked, (std::vector<std::size_t>{0, 3, 5}));
  EXPECT_EQ(script.launches.size(), 10u);
  // After the first six loads come six requests to unload and to quit.
  EXPECT_EQ(script.asked_when_loaded, (std::vector<int>{6, 6, 6, 6, 6, 6, 22, 22, 22, 22}));
}

TEST(Comparison, SaysHowManyPairsFitOnceWorkersHaveLoaded) {
  ComparisonScript script = steady(1);
  std::vector<std::optional<std::int64_t>> fitting;
  ComparisonRequest request = request_of(script, 1, 3);
  request.pairs_at_once = [&](std::int64_t, std::optional<std::int64_t> fits) {
    fitting.push_back(fits);
    return 1;
  };
  constexpr std::int64_t gibibyte = 1 << 30;
  script.loaded.memory_bytes = 10 * gibibyte;
  script.loaded.device_memory_bytes = 80 * gibibyte;
  measure_comparison(request);
  const std::vector<std::optional<std::int64_t>> from_the_second_on{std::nullopt, 2, 2};
  EXPECT_EQ(fitting, from_the_second_on);
  script.loaded.memory_bytes = 0;
  fitting.clear();
  measure_comparison(request);
  EXPECT_EQ(fitting, std::vector<std::optional<std::int64_t>>(3));
}

TEST(Comparison, RefusesAProgramThatChangesBetweenLaunches) {
  ComparisonScript script = steady(1);
  ComparisonRequest request = request_of(script, 1, 5);
  script.workloads.push_back("new workload");
  EXPECT_THROW(measure_comparison(request), WorkerError);
}

TEST(Comparison, KeepsWholePairsWhenItIsStopped) {
  ComparisonScript script = steady(1);
  ComparisonRequest request = request_of(script, 1, 10);
  request.launch = [&script](ComparisonSide side, std::int64_t launch) -> std::unique_ptr<Worker> {
    if (launch == 7) throw WaitStopped();
    return std::make_unique<FakeWorker>(script, side, launch);
  };
  const ComparisonMeasurement measured = measure_comparison(request);
  EXPECT_TRUE(measured.stopped);
  EXPECT_EQ(measured.pairs.size(), 2u);
}

}  // namespace
}  // namespace stepgate
