// SPDX-License-Identifier: MIT
#include "plan/allocators/caching/free_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>
#include <tuple>

#include "base/random.h"
#include "plan/allocators/caching/block_pool.h"

namespace stepgate {
namespace {

// A simple reference for the order of blocks.
struct Ordered {
  bool operator()(const CachedBlock* a, const CachedBlock* b) const {
    return std::tie(a->stream, a->bytes, a->address) < std::tie(b->stream, b->bytes, b->address);
  }
};

TEST(FreeBlocks, AnswerAsOneOrderedSetWould) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  FreeBlocks free;
  std::set<CachedBlock*, Ordered> plain;
  std::deque<CachedBlock> blocks;
  for (int step = 0; step < 20000; ++step) {
    if (plain.empty() || random.uniform() < 0.51) {
      CachedBlock& block = blocks.emplace_back();
      block.stream = static_cast<StreamId>(random.below(3));
      const double exponent = random.uniform() < 0.5 ? 3 : random.uniform() * 51;
      block.bytes = 512 * (1 + static_cast<std::int64_t>(std::exp2(exponent)));
      block.address = 512 * random.below(1'000'000'000);
      if (!plain.insert(&block).second) continue;
      free.put(block);
    } else {
      CachedBlock* block =
          *std::next(plain.begin(), static_cast<std::ptrdiff_t>(random.below(plain.size())));
      plain.erase(block);
      free.take(*block);
    }
    CachedBlock key;
    key.stream = static_cast<StreamId>(random.below(3));
    key.bytes = 512 * (1 + static_cast<std::int64_t>(std::exp2(random.uniform() * 51)));
    const auto of_its_stream = [&](auto place) {
      return place != plain.end() && (*place)->stream == key.stream ? *place : nullptr;
    };
    const auto expected = plain.lower_bound(&key);
    CachedBlock* found = free.smallest_of_at_least(key.bytes, key.stream);
    ASSERT_EQ(found, of_its_stream(expected)) << "step " << step;
    if (found) {
      ASSERT_EQ(free.next_larger(*found), of_its_stream(std::next(expected))) << "step " << step;
    }
    key.bytes = INT64_MAX;
    const auto end = plain.lower_bound(&key);
    ASSERT_EQ(free.largest(key.stream),
              end == plain.begin() ? nullptr : of_its_stream(std::prev(end)));
    if (step % 1000 == 0) {
      ASSERT_TRUE(std::ranges::equal(free.all(), plain));
    }
  }
}

TEST(FreeBlocks, HaveRoomForTheLargestBlockAndForTheSmallest) {
  FreeBlocks free;
  CachedBlock smallest, largest;
  smallest.bytes = 512;
  largest.bytes = largest_request_bytes;
  free.put(largest);
  EXPECT_EQ(free.smallest_of_at_least(512, 0), &largest);
  free.put(smallest);
  EXPECT_EQ(free.smallest_of_at_least(512, 0), &smallest);
  EXPECT_EQ(free.smallest_of_at_least(513, 0), &largest);
  EXPECT_EQ(free.next_larger(smallest), &largest);
  EXPECT_EQ(free.next_larger(largest), nullptr);
  free.take(largest);
  EXPECT_EQ(free.largest(0), &smallest);
  EXPECT_EQ(free.largest(1), nullptr);
}

}  // namespace
}  // namespace stepgate
