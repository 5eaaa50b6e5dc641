// SPDX-License-Identifier: MIT
// Tests properties of every allocator with random requests, after each request and at the end.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <random>

#include "base/random.h"
#include "plan/allocators/first_fit_allocator.h"
#include "plan/allocators/testing/allocator_by_hand.h"
#include "plan/allocators/testing/random_requests.h"

namespace stepgate {
namespace {

constexpr std::int64_t device_bytes = 1024 * MiB;

struct Kind {
  const char* name;
  CachingRules rules;
  bool first_fit = false;
};

const Kind kinds[] = {
    {"caching", {}},
    {"expandable", {.segments = SegmentKind::expandable}},
    {"rounded", {.round_divisions = 8}},
    {"split_max", {.split_max_bytes = 32 * MiB}},
    {"garbage_collected", {.garbage_collection_threshold = 0.6}},
    {"all_rules",
     {.round_divisions = 4, .split_max_bytes = 64 * MiB, .garbage_collection_threshold = 0.5}},
    {"expandable_with_split_max",
     {.segments = SegmentKind::expandable, .split_max_bytes = 32 * MiB}},
    {"first_fit", {}, true},
};

std::unique_ptr<MemoryAllocator> make(const Kind& kind, DeviceMemory& memory) {
  if (kind.first_fit) return std::make_unique<FirstFitAllocator>(memory);
  return std::make_unique<CachingAllocator>(memory, kind.rules);
}

std::vector<std::uint8_t> random_bytes(std::uint64_t seed, std::size_t count) {
  Random random(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.bits());
  return bytes;
}

// A new seed in every run, so that many are tried over time. A failure prints it.
std::uint64_t fresh_seed() {
  return std::random_device()();
}

class AnyAllocator : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Each, AnyAllocator, testing::ValuesIn(kinds),
                         [](const auto& one) { return one.param.name; });

TEST_P(AnyAllocator, KeepsItsPromisesAfterEveryRequestAndReturnsToNothing) {
  const std::uint64_t seed = fresh_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::int64_t refused = 0;
  for (std::uint64_t run = 0; run < 20; ++run) {
    SimulatedMemory memory(device_bytes);
    const auto allocator = make(GetParam(), memory);
    auto* captures = dynamic_cast<CachingAllocator*>(allocator.get());
    RandomRequests requests(memory, *allocator);
    const std::vector<std::uint8_t> source = random_bytes(seed + run, 2000);
    RequestBytes bytes(source);
    for (int step = 0; !bytes.empty(); ++step) {
      requests.step(bytes, captures);
      const auto broken = requests.broken();
      ASSERT_EQ(broken, std::nullopt) << "run " << run << ", step " << step;
    }
    refused += allocator->statistics().num_ooms;
    requests.let_everything_go(captures);
    EXPECT_EQ(requests.broken(), std::nullopt);
    EXPECT_EQ(memory.free_bytes(), device_bytes) << "run " << run;
    EXPECT_TRUE(allocator->snapshot().empty());
  }
  EXPECT_GT(refused, 0) << "memory never ran out: the requests are too small";
}

TEST_P(AnyAllocator, GivesTheSameAnswersToTheSameRequests) {
  const std::uint64_t seed = fresh_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const std::vector<std::uint8_t> source = random_bytes(seed, 5000);
  std::vector<Address> first;
  MemoryStatistics statistics;
  for (int run = 0; run < 2; ++run) {
    SimulatedMemory memory(device_bytes);
    const auto allocator = make(GetParam(), memory);
    RandomRequests requests(memory, *allocator);
    for (RequestBytes bytes(source); !bytes.empty();) {
      requests.step(bytes, dynamic_cast<CachingAllocator*>(allocator.get()));
    }
    if (run == 1) {
      EXPECT_EQ(requests.addresses(), first);
      EXPECT_EQ(allocator->statistics(), statistics);
    }
    first = requests.addresses();
    statistics = allocator->statistics();
    requests.let_everything_go(dynamic_cast<CachingAllocator*>(allocator.get()));
  }
  EXPECT_GT(first.size(), 100U);
}

// An expandable segment maps whole pages, which the cap does not take into account. This is
// PyTorch's rule, shown in caching_expandable_test.
TEST_P(AnyAllocator, ReservesNoMoreThanItsCap) {
  const std::uint64_t seed = fresh_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  constexpr std::int64_t cap = 200 * MiB;
  const std::int64_t page =
      GetParam().rules.segments == SegmentKind::expandable ? large_segment_bytes : 0;
  SimulatedMemory memory(device_bytes);
  const auto allocator = make(GetParam(), memory);
  allocator->set_cap(cap);
  Random random(seed);
  std::vector<BlockId> held;
  for (int step = 0; step < 3000; ++step) {
    if (!held.empty() && random.uniform() < 0.45) {
      std::swap(held[random.below(held.size())], held.back());
      allocator->free(held.back());
      held.pop_back();
      continue;
    }
    const auto bytes = static_cast<std::int64_t>(std::exp2(random.uniform() * 27)) + 1;
    const BlockOrRefusal answer =
        allocator->allocate(bytes, static_cast<StreamId>(random.below(3)));
    if (const auto* block = std::get_if<HeldBlock>(&answer)) held.push_back(block->id);
    ASSERT_LE(allocator->statistics().reserved_bytes.all.peak, cap + page) << "step " << step;
  }
  EXPECT_GT(allocator->statistics().num_ooms, 0);
}

}  // namespace
}  // namespace stepgate
