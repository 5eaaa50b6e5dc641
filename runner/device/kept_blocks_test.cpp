// SPDX-License-Identifier: MIT
// Tests which blocks steps get when they use a slot in turn. The fake memory only counts.
#include "device/kept_blocks.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace stepgate {
namespace {

using Sizes = std::vector<std::int64_t>;

struct Memory {
  std::int64_t bytes = 0;
};

class StepsMemory {
 public:
  // The addresses that a step gets that takes these sizes in this order.
  std::vector<void*> use(const Sizes& sizes) {
    blocks.begin(sizes);
    std::vector<void*> addresses;
    for (const std::int64_t bytes : sizes) addresses.push_back(take(bytes));
    return addresses;
  }

  void* take(std::int64_t bytes) {
    void* const memory = blocks.take(bytes, [&](std::int64_t allocated) {
      ++allocations;
      return std::make_unique<Memory>(Memory{allocated});
    });
    EXPECT_GE(static_cast<Memory*>(memory)->bytes, bytes);
    return memory;
  }

  KeptBlocks<std::unique_ptr<Memory>> blocks;
  int allocations = 0;
};

Sizes random_sizes(std::mt19937_64& random) {
  Sizes sizes(random() % 12);
  for (std::int64_t& bytes : sizes) bytes = 1 + static_cast<std::int64_t>(random() % 20);
  return sizes;
}

TEST(KeptBlocks, GiveEqualStepsTheSameAddresses) {
  StepsMemory memory_of_steps;
  const Sizes sizes = {7, 100, 7, 3};
  const auto first = memory_of_steps.use(sizes);
  EXPECT_EQ(memory_of_steps.allocations, 4);
  EXPECT_EQ(memory_of_steps.use(sizes), first);
  EXPECT_EQ(memory_of_steps.allocations, 4);
  EXPECT_EQ(memory_of_steps.blocks.bytes(), 117);
}

// A mark stays as long as its block, whichever steps use the block. A new block that replaces it
// has no mark.
TEST(KeptBlocks, KeepTheMarkOfABlock) {
  StepsMemory memory_of_steps;
  const int content = 0;
  const auto first = memory_of_steps.use({100, 50});
  EXPECT_EQ(memory_of_steps.blocks.mark_of(first[0]), nullptr);
  memory_of_steps.blocks.mark_of(first[0]) = &content;
  (void)memory_of_steps.use({10});
  ASSERT_EQ(memory_of_steps.use({100, 50}), first);
  EXPECT_EQ(memory_of_steps.blocks.mark_of(first[0]), &content);
  EXPECT_EQ(memory_of_steps.blocks.mark_of(first[1]), nullptr);
  const auto larger = memory_of_steps.use({200});
  EXPECT_EQ(memory_of_steps.blocks.mark_of(larger[0]), nullptr);
}

TEST(KeptBlocks, ServeAStepThatAsksForOneMoreOfThem) {
  StepsMemory memory_of_steps;
  const auto first = memory_of_steps.use({100, 50, 10});
  const auto second = memory_of_steps.use({20, 100, 50, 10});
  EXPECT_EQ(memory_of_steps.allocations, 4);
  EXPECT_EQ((std::vector<void*>{second.begin() + 1, second.end()}), first);
  EXPECT_EQ(memory_of_steps.use({100, 50, 10}), first);
  EXPECT_EQ(memory_of_steps.allocations, 4);
}

TEST(KeptBlocks, HoldALargerBlockInsteadOfASmallerOne) {
  StepsMemory memory_of_steps;
  for (const std::int64_t bytes : {10, 20, 40}) (void)memory_of_steps.use({bytes});
  EXPECT_EQ(memory_of_steps.blocks.bytes(), 40);
  (void)memory_of_steps.use({5});
  EXPECT_EQ(memory_of_steps.allocations, 3);
  EXPECT_EQ(memory_of_steps.blocks.asked_bytes(), 5);
}

// Equal steps share addresses from the first time on, and each step finds its own again: `begin`
// reserves all blocks before any is taken.
TEST(KeptBlocks, AreTheSameForTheStepThatMadeThem) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  StepsMemory memory_of_steps;
  for (int turn = 0; turn < 2000; ++turn) {
    const Sizes sizes = random_sizes(random);
    const auto addresses = memory_of_steps.use(sizes);
    ASSERT_EQ(memory_of_steps.use(sizes), addresses);
  }
}

TEST(KeptBlocks, AllocateNothingOnceEveryStepHasBeenThere) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    StepsMemory memory_of_steps;
    std::vector<Sizes> steps(1 + random() % 6);
    std::int64_t most_bytes = 0;
    for (Sizes& sizes : steps) {
      sizes = random_sizes(random);
      (void)memory_of_steps.use(sizes);
      for (const std::int64_t bytes : sizes) most_bytes = std::max(most_bytes, bytes);
    }
    std::size_t most_blocks = 0;
    for (const Sizes& sizes : steps) most_blocks = std::max(most_blocks, sizes.size());
    EXPECT_LE(memory_of_steps.blocks.bytes(), most_bytes * static_cast<std::int64_t>(most_blocks));
    const int before = memory_of_steps.allocations;
    std::vector<std::vector<void*>> addresses;
    for (const Sizes& sizes : steps) addresses.push_back(memory_of_steps.use(sizes));
    for (int turn = 0; turn < 20; ++turn) {
      const std::size_t step = random() % steps.size();
      ASSERT_EQ(memory_of_steps.use(steps[step]), addresses[step]);
    }
    ASSERT_EQ(memory_of_steps.allocations, before);
  }
}

TEST(KeptBlocks, SayWhatIsMissingBeforeItIsAllocated) {
  StepsMemory memory_of_steps;
  (void)memory_of_steps.use({10, 50});
  memory_of_steps.blocks.begin({60, 40, 5});
  EXPECT_EQ(memory_of_steps.blocks.missing_bytes(), 60);
  EXPECT_EQ(memory_of_steps.blocks.bytes(), 60);
  memory_of_steps.blocks.give_up_all();
  memory_of_steps.blocks.begin({60, 40, 5});
  EXPECT_EQ(memory_of_steps.blocks.missing_bytes(), 105);
  EXPECT_EQ(memory_of_steps.blocks.bytes(), 0);
}

TEST(KeptBlocks, GiveUpWhatTheStepInThemDoesNotUse) {
  StepsMemory memory_of_steps;
  (void)memory_of_steps.use({10, 5000});
  const auto small = memory_of_steps.use({10});
  EXPECT_EQ(memory_of_steps.blocks.bytes(), 5010);
  memory_of_steps.blocks.give_up_free();
  EXPECT_EQ(memory_of_steps.blocks.bytes(), 10);
  EXPECT_EQ(memory_of_steps.use({10}), small);
}

TEST(KeptBlocks, ForgetWhatCouldNotBeAllocated) {
  StepsMemory memory_of_steps;
  const auto first = memory_of_steps.use({10});
  memory_of_steps.blocks.begin({10, 1000});
  const auto refuse = [](std::int64_t) { return std::unique_ptr<Memory>(); };
  EXPECT_EQ(memory_of_steps.blocks.take(1000, refuse), nullptr);
  EXPECT_EQ(memory_of_steps.use({10}), first);
  EXPECT_EQ(memory_of_steps.blocks.bytes(), 10);
}

}  // namespace
}  // namespace stepgate
