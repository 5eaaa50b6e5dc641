// SPDX-License-Identifier: MIT
// Packings of random lifetimes and of the suite's scenarios.
#include "plan/allocate/pack_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <numeric>

#include "base/random.h"
#include "plan/compose/build_step_plan.h"
#include "plan/testing/steps_by_hand.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

Lifetime live(std::int64_t blocks, int first, int last, int buffer = 0) {
  return {buffer, 1, blocks * block, first, last, LivenessReason::it_is_used};
}

// Sizes span three orders of magnitude. Short lifetimes are more likely; a few last the whole step.
std::vector<Lifetime> random_lifetimes(Random& random, int most) {
  const auto operations = static_cast<int>(2 + random.below(100));
  std::vector<Lifetime> all;
  const auto count = static_cast<int>(1 + random.below(static_cast<std::uint64_t>(most)));
  for (int index = 0; index < count; ++index) {
    const auto blocks = static_cast<std::int64_t>(std::exp(7 * random.uniform()));
    const auto first = static_cast<int>(random.below(static_cast<std::uint64_t>(operations)));
    const auto length = static_cast<int>(operations * std::pow(random.uniform(), 3));
    all.push_back(live(blocks, first, std::min(first + length, operations - 1), index));
    if (random.below(8) == 0) {
      all.back() = {index, 1, blocks * block, 0, operations - 1, LivenessReason::it_is_kept};
    }
  }
  return all;
}

// Buffers that are live at once must not overlap, and must lie within the arena.
void expect_apart(const std::vector<Lifetime>& all, const Arena& arena) {
  ASSERT_EQ(arena.offsets_bytes.size(), all.size());
  for (std::size_t a = 0; a < all.size(); ++a) {
    const std::int64_t begin = arena.offsets_bytes[a];
    ASSERT_GE(begin, 0);
    ASSERT_EQ(begin % block, 0);
    ASSERT_LE(begin + all[a].bytes, arena.bytes);
    for (std::size_t b = 0; b < a; ++b) {
      const bool at_once = all[a].first <= all[b].last && all[b].first <= all[a].last;
      const bool overlap = begin < arena.offsets_bytes[b] + all[b].bytes &&
                           arena.offsets_bytes[b] < begin + all[a].bytes;
      ASSERT_FALSE(at_once && overlap) << a << " and " << b;
    }
  }
}

TEST(PackArena, OfNothingIsEmpty) {
  EXPECT_EQ(pack_arena({}).bytes, 0);
  EXPECT_EQ(most_live_bytes({}), 0);
}

TEST(PackArena, OfOneBufferIsThatBuffer) {
  const std::vector one{live(7, 3, 5)};
  EXPECT_EQ(pack_arena(one).bytes, 7 * block);
  EXPECT_EQ(pack_arena(one).offsets_bytes, std::vector<std::int64_t>{0});
  EXPECT_EQ(most_live_bytes(one), 7 * block);
}

TEST(PackArena, ReusesThePlaceOfWhatIsOver) {
  const std::vector apart{live(4, 0, 1), live(3, 2, 3), live(1, 4, 4)};
  EXPECT_EQ(pack_arena(apart).bytes, 4 * block);
  // Both are live at operation 2, which reads the first and writes the second.
  const std::vector meeting{live(4, 0, 2), live(3, 2, 3)};
  EXPECT_EQ(pack_arena(meeting).bytes, 7 * block);
}

TEST(PackArena, TakesTheSmallestGapThatIsLargeEnough) {
  // The two that end leave gaps of 20 and 10 blocks below others that stay.
  const std::vector all{live(20, 0, 4), live(15, 0, 9), live(10, 0, 4),
                        live(9, 0, 9),  live(8, 5, 9),  live(2, 5, 9)};
  const Arena arena = pack_arena(all);
  EXPECT_EQ(arena.offsets_bytes, (std::vector<std::int64_t>{0, 20 * block, 35 * block, 45 * block,
                                                            35 * block, 43 * block}));
  EXPECT_EQ(arena.bytes, most_live_bytes(all));
}

TEST(PackArena, PutsWhatIsAlwaysLiveAtTheBottom) {
  std::vector all{live(50, 0, 1), live(1, 0, 3)};
  all[1].because = LivenessReason::it_is_kept;
  EXPECT_EQ(pack_arena(all).offsets_bytes, (std::vector<std::int64_t>{block, 0}));
}

TEST(PackArena, KeepsApartWhatLivesAtOnceAndIsNeverBelowItsBound) {
  constexpr std::uint64_t seed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<Lifetime> all = random_lifetimes(random, 60);
    const Arena arena = pack_arena(all);
    expect_apart(all, arena);
    EXPECT_GE(arena.bytes, most_live_bytes(all)) << "trial " << trial;
  }
}

TEST(PackArena, DoesNotDependOnTheOrderOfItsInput) {
  constexpr std::uint64_t seed = 8;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    const std::vector<Lifetime> all = random_lifetimes(random, 40);
    const Arena arena = pack_arena(all);
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t left = order.size(); left > 1; --left)
      std::swap(order[left - 1], order[random.below(left)]);
    std::vector<Lifetime> shuffled;
    for (const std::size_t index : order) shuffled.push_back(all[index]);
    const Arena again = pack_arena(shuffled);
    ASSERT_EQ(again.bytes, arena.bytes);
    for (std::size_t index = 0; index < order.size(); ++index)
      ASSERT_EQ(again.offsets_bytes[index], arena.offsets_bytes[order[index]]) << trial;
  }
}

TEST(PackArena, OfRandomLifetimesIsAFewPercentAboveItsBound) {
  constexpr std::uint64_t seed = 9;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  std::vector<double> above;
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<Lifetime> all = random_lifetimes(random, 100);
    const auto bound = static_cast<double>(most_live_bytes(all));
    above.push_back(static_cast<double>(pack_arena(all).bytes) / bound - 1);
  }
  std::sort(above.begin(), above.end());
  const double mean = std::reduce(above.begin(), above.end()) / static_cast<double>(above.size());
  const double p99 = above[above.size() * 99 / 100];
  std::cout << "above the bound: mean " << mean << ", p99 " << p99 << ", most " << above.back()
            << '\n';
  EXPECT_LT(mean, 0.02);
  EXPECT_LT(p99, 0.15);
}

// This many buffers take several pieces of PlacedInOrder.
TEST(PackArena, OfThousandsIsApartToo) {
  Random random(5);
  std::vector<Lifetime> all;
  for (int index = 0; index < 3000; ++index) {
    const auto first = static_cast<int>(random.below(6000));
    const auto blocks = static_cast<std::int64_t>(1 + random.below(900));
    all.push_back(live(blocks, first, first + static_cast<int>(random.below(40)), index));
  }
  const Arena arena = pack_arena(all);
  expect_apart(all, arena);
  EXPECT_LE(static_cast<double>(arena.bytes), 1.2 * static_cast<double>(most_live_bytes(all)));
}

TEST(PackArena, OfTheSuitesScenariosIsWithinThreePercentOfItsBound) {
  int plans = 0, tight = 0;
  double most = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STEPGATE_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".toml") continue;
    for (const StepPlan& plan : build_step_plans(read_scenario(entry.path()), 1)) {
      const Lifetimes lifetimes = lifetimes_of(plan);
      const Arena arena = pack_arena(lifetimes.device);
      expect_apart(lifetimes.device, arena);
      const auto bound = static_cast<double>(most_live_bytes(lifetimes.device));
      EXPECT_LE(static_cast<double>(arena.bytes), 1.03 * bound) << plan.scenario << plan.variant;
      most = std::max(most, static_cast<double>(arena.bytes) / bound - 1);
      if (arena.bytes == most_live_bytes(lifetimes.device)) ++tight;
      ++plans;
    }
  }
  std::cout << "above the bound: at most " << most << " over " << plans << " plans, not at all for "
            << tight << "\n";
  EXPECT_GT(plans, 20);
}

}  // namespace
}  // namespace stepgate
