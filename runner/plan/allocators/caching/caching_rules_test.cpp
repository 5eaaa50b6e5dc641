// SPDX-License-Identifier: MIT
#include "plan/allocators/caching/caching_rules.h"

#include <gtest/gtest.h>

#include "plan/allocators/testing/allocator_by_hand.h"

namespace stepgate {
namespace {

TEST(CachingRules, RoundBlocksToMultiplesOf512Bytes) {
  const CachingRules rules;
  EXPECT_EQ(rounded_size(1, rules), 512);
  EXPECT_EQ(rounded_size(512, rules), 512);
  EXPECT_EQ(rounded_size(513, rules), 1024);
  EXPECT_EQ(rounded_size(MiB + 1, rules), MiB + 512);
}

// PyTorch's example: 1200 lies between 1024 and 2048; four divisions give 1024, 1280, 1536, 1792.
// Small sizes are not divided, so the example is scaled up.
TEST(CachingRules, DivideTheRoomBetweenPowersOfTwo) {
  const CachingRules rules{.round_divisions = 4};
  EXPECT_EQ(rounded_size(1200, rules), 1536) << "up to 512 bytes for each division: as ever";
  EXPECT_EQ(rounded_size(2048, rules), 2048);
  EXPECT_EQ(rounded_size(1200 * 1024, rules), 1280 * 1024);
  EXPECT_EQ(rounded_size(1280 * 1024, rules), 1280 * 1024);
  EXPECT_EQ(rounded_size(1024 * 1024, rules), 1024 * 1024);
  EXPECT_EQ(rounded_size(1793 * 1024, rules), 2048 * 1024);
  EXPECT_EQ(rounded_size(1200 * 1024, {.round_divisions = 1}), 1200 * 1024);
}

TEST(CachingRules, TakeSmallSegmentsSharedSegmentsAndOwnSegments) {
  EXPECT_EQ(segment_size(512), 2 * MiB);
  EXPECT_EQ(segment_size(MiB), 2 * MiB);
  EXPECT_EQ(segment_size(MiB + 512), 20 * MiB);
  EXPECT_EQ(segment_size(10 * MiB - 512), 20 * MiB);
  EXPECT_EQ(segment_size(10 * MiB), 10 * MiB);
  EXPECT_EQ(segment_size(10 * MiB + 512), 12 * MiB);
}

TEST(CachingRules, SplitASmallBlockForAnyRemainderAndALargeOneForMoreThanAMebibyte) {
  const CachingRules rules;
  EXPECT_TRUE(leaves_remainder(1024, 512, PoolSize::small, rules));
  EXPECT_FALSE(leaves_remainder(512, 512, PoolSize::small, rules));
  EXPECT_FALSE(leaves_remainder(5 * MiB, 4 * MiB, PoolSize::large, rules));
  EXPECT_TRUE(leaves_remainder(5 * MiB + 512, 4 * MiB, PoolSize::large, rules));
  EXPECT_TRUE(leaves_remainder(5 * MiB, 5 * MiB - 512, PoolSize::large,
                               {.segments = SegmentKind::expandable}));
}

TEST(CachingRules, KeepBlocksFromSplitMaxOnForRequestsNearTheirSize) {
  const CachingRules rules{.split_max_bytes = 32 * MiB};
  EXPECT_FALSE(leaves_remainder(64 * MiB, 32 * MiB, PoolSize::large, rules));
  EXPECT_TRUE(leaves_remainder(31 * MiB, 4 * MiB, PoolSize::large, rules));
  EXPECT_FALSE(may_serve(32 * MiB, 4 * MiB, rules));
  EXPECT_TRUE(may_serve(31 * MiB, 4 * MiB, rules));
  EXPECT_TRUE(may_serve(52 * MiB - 512, 32 * MiB, rules));
  EXPECT_FALSE(may_serve(52 * MiB, 32 * MiB, rules));
  EXPECT_TRUE(may_serve(1000 * MiB, 32 * MiB, CachingRules()));
}

}  // namespace
}  // namespace stepgate
