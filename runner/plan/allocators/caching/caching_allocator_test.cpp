// SPDX-License-Identifier: MIT
// Tests each rule of the caching allocator with segments of its own.
#include "plan/allocators/caching/caching_allocator.h"

#include "plan/allocators/simulated_memory.h"
#include "plan/allocators/testing/allocator_by_hand.h"

namespace stepgate {
namespace {

class ACachingAllocator : public testing::Test {
 protected:
  SimulatedMemory memory{GiB};
  CachingAllocator allocator{memory, CachingRules()};
  const MemoryStatistics& statistics = allocator.statistics();
};

TEST_F(ACachingAllocator, PacksSmallBlocksIntoSegmentsOfTwoMebibytes) {
  const HeldBlock first = hold(allocator, 100);
  const HeldBlock second = hold(allocator, 1000);
  EXPECT_EQ(first.bytes, 512);
  EXPECT_EQ(second.bytes, 1024);
  EXPECT_EQ(second.address, first.address + 512);
  EXPECT_EQ(reserved(allocator), 2 * MiB);
  EXPECT_EQ(statistics.num_device_alloc, 1);
  EXPECT_EQ(statistics.requested_bytes.small_pool.current, 1100);
  EXPECT_EQ(statistics.allocated_bytes.small_pool.current, 1536);
  EXPECT_EQ(statistics.inactive_split_bytes.all.current, 2 * MiB - 1536);
}

TEST_F(ACachingAllocator, SharesTwentyMebibytesBetweenBlocksBelowTen) {
  const HeldBlock first = hold(allocator, 9 * MiB);
  const HeldBlock second = hold(allocator, 9 * MiB);
  EXPECT_EQ(second.address, first.address + 9 * MiB);
  EXPECT_EQ(reserved(allocator), 20 * MiB);
  hold(allocator, 9 * MiB);
  EXPECT_EQ(reserved(allocator), 40 * MiB);
}

TEST_F(ACachingAllocator, TakesSegmentsOfTheirOwnForLargeBlocks) {
  hold(allocator, 10 * MiB);
  EXPECT_EQ(reserved(allocator), 10 * MiB);
  const HeldBlock odd = hold(allocator, 11 * MiB);
  EXPECT_EQ(reserved(allocator), 22 * MiB);
  EXPECT_EQ(odd.bytes, 12 * MiB) << "a remainder of one mebibyte is not split off";
  EXPECT_EQ(statistics.segment.large_pool.current, 2);
}

TEST_F(ACachingAllocator, KeepsFreedMemoryAndHandsItOutAgain) {
  const HeldBlock first = hold(allocator, 30 * MiB);
  let_go(allocator, first);
  EXPECT_EQ(reserved(allocator), 30 * MiB);
  EXPECT_EQ(hold(allocator, 30 * MiB).address, first.address);
  EXPECT_EQ(statistics.num_device_alloc, 1);
}

TEST_F(ACachingAllocator, TakesTheSmallestBlockThatIsLargeEnough) {
  const HeldBlock large = hold(allocator, 60 * MiB);
  const HeldBlock middle = hold(allocator, 40 * MiB);
  const HeldBlock small = hold(allocator, 20 * MiB);
  for (const HeldBlock& block : {large, middle, small}) let_go(allocator, block);
  EXPECT_EQ(hold(allocator, 30 * MiB).address, middle.address);
  EXPECT_EQ(hold(allocator, 30 * MiB).address, large.address);
  EXPECT_EQ(hold(allocator, 30 * MiB).address, large.address + 30 * MiB);
}

TEST_F(ACachingAllocator, JoinsFreeNeighbours) {
  const HeldBlock left = hold(allocator, 4 * MiB);
  const HeldBlock middle = hold(allocator, 4 * MiB);
  const HeldBlock right = hold(allocator, 4 * MiB);
  let_go(allocator, left);
  let_go(allocator, right);
  EXPECT_EQ(statistics.inactive_split.all.current, 2) << "the right one joined the rest";
  let_go(allocator, middle);
  EXPECT_EQ(statistics.inactive_split.all.current, 0);
  ASSERT_EQ(allocator.snapshot().size(), 1U);
  EXPECT_EQ(allocator.snapshot().front().blocks.size(), 1U);
}

TEST_F(ACachingAllocator, NeverServesOneStreamFromAnother) {
  let_go(allocator, hold(allocator, 30 * MiB, 1));
  hold(allocator, 30 * MiB, 2);
  EXPECT_EQ(reserved(allocator), 60 * MiB);
  hold(allocator, 30 * MiB, 1);
  EXPECT_EQ(reserved(allocator), 60 * MiB);
}

TEST_F(ACachingAllocator, KeepsABlockUntilTheOtherStreamsThatUseItAreDone) {
  const HeldBlock block = hold(allocator, 30 * MiB, 1);
  allocator.record_stream(block.id, 2);
  allocator.record_stream(block.id, 3);
  let_go(allocator, block);
  EXPECT_EQ(statistics.allocated_bytes.all.current, 0);
  EXPECT_EQ(statistics.active_bytes.all.current, 30 * MiB);
  EXPECT_EQ(allocator.snapshot().front().blocks.front().use, BlockUse::pending);
  memory.finish(2);
  EXPECT_NE(hold(allocator, 30 * MiB, 1).address, block.address);
  memory.finish(3);
  EXPECT_EQ(hold(allocator, 30 * MiB, 1).address, block.address);
  EXPECT_EQ(memory.waits(), 0);
}

TEST_F(ACachingAllocator, DoesNotWaitForUsesOnABlocksOwnStream) {
  const HeldBlock block = hold(allocator, 30 * MiB, 1);
  allocator.record_stream(block.id, 1);
  let_go(allocator, block);
  EXPECT_EQ(statistics.active_bytes.all.current, 0);
}

TEST_F(ACachingAllocator, GivesBackOnlySegmentsThatNothingIsIn) {
  const HeldBlock alone = hold(allocator, 30 * MiB);
  const HeldBlock neighbour = hold(allocator, 4 * MiB);
  const HeldBlock freed = hold(allocator, 4 * MiB);
  let_go(allocator, alone);
  let_go(allocator, freed);
  allocator.empty_cache();
  EXPECT_EQ(reserved(allocator), 20 * MiB);
  EXPECT_EQ(memory.free_bytes(), GiB - 20 * MiB);
  EXPECT_EQ(statistics.num_device_free, 1);
  let_go(allocator, neighbour);
  allocator.empty_cache();
  EXPECT_EQ(reserved(allocator), 0);
  EXPECT_EQ(statistics.num_sync_all_streams, 2);
}

TEST_F(ACachingAllocator, WaitsForStreamsWhenTheCacheIsEmptied) {
  const HeldBlock block = hold(allocator, 30 * MiB, 1);
  allocator.record_stream(block.id, 2);
  let_go(allocator, block);
  allocator.empty_cache();
  EXPECT_EQ(memory.waits(), 1);
  EXPECT_EQ(reserved(allocator), 0);
}

TEST_F(ACachingAllocator, GivesTheCacheBackAndTriesAgainBeforeItRefuses) {
  let_go(allocator, hold(allocator, 600 * MiB, 1));
  hold(allocator, 500 * MiB, 2);
  EXPECT_EQ(statistics.num_alloc_retries, 1);
  EXPECT_EQ(statistics.num_ooms, 0);
  EXPECT_EQ(reserved(allocator), 500 * MiB);
}

TEST_F(ACachingAllocator, SaysWhyItRefuses) {
  const HeldBlock small = hold(allocator, 4 * MiB);
  hold(allocator, 500 * MiB);
  let_go(allocator, hold(allocator, 300 * MiB, 1));
  const HeldBlock pending = hold(allocator, 100 * MiB);
  (void)small;
  allocator.record_stream(pending.id, 1);
  const Refusal refusal = refusal_of(allocator, 600 * MiB - 1);
  EXPECT_EQ(refusal.by, RefusedBy::device);
  EXPECT_EQ(refusal.requested_bytes, 600 * MiB - 1);
  EXPECT_EQ(refusal.rounded_bytes, 600 * MiB);
  EXPECT_EQ(refusal.segment_bytes, 600 * MiB);
  EXPECT_EQ(refusal.live_bytes, 604 * MiB);
  EXPECT_EQ(refusal.reserved_bytes, 620 * MiB) << "the cache of stream 1 was given back";
  EXPECT_EQ(refusal.free_inside_bytes, 16 * MiB);
  EXPECT_EQ(refusal.largest_free_bytes, 16 * MiB);
  EXPECT_EQ(refusal.largest_usable_bytes, 16 * MiB);
  EXPECT_EQ(refusal.device_free_bytes, GiB - 620 * MiB);
  EXPECT_EQ(refusal.cap_bytes, std::nullopt);
  EXPECT_EQ(statistics.num_ooms, 1);
  EXPECT_EQ(statistics.num_alloc_retries, 1);
}

TEST_F(ACachingAllocator, TellsTheLargestBlockFromTheLargestOneThatWouldHaveServed) {
  hold(allocator, 4 * MiB, 1);
  hold(allocator, 14 * MiB, 2);
  let_go(allocator, hold(allocator, 2 * MiB, 2));
  allocator.set_cap(40 * MiB);
  const Refusal refusal = refusal_of(allocator, 22 * MiB, 2);
  EXPECT_EQ(refusal.by, RefusedBy::cap);
  EXPECT_EQ(refusal.cap_bytes, 40 * MiB);
  EXPECT_EQ(refusal.largest_free_bytes, 16 * MiB);
  EXPECT_EQ(refusal.largest_usable_bytes, 0);
}

TEST_F(ACachingAllocator, DoesNotAskTheDeviceForWhatIsAboveTheCap) {
  allocator.set_cap(30 * MiB);
  hold(allocator, 5 * MiB);
  hold(allocator, 10 * MiB);
  EXPECT_EQ(refusal_of(allocator, 12 * MiB).by, RefusedBy::cap);
  EXPECT_EQ(statistics.num_device_alloc, 1) << "ten mebibytes fitted behind five";
  hold(allocator, 10 * MiB);
  EXPECT_EQ(reserved(allocator), 30 * MiB) << "exactly the cap is no refusal";
}

TEST_F(ACachingAllocator, RefusesWhatNoDeviceHas) {
  EXPECT_EQ(refusal_of(allocator, largest_request_bytes).by, RefusedBy::device);
  EXPECT_EQ(refusal_of(allocator, INT64_MAX).by, RefusedBy::size);
}

TEST_F(ACachingAllocator, CountsPeaksAnewAfterAReset) {
  let_go(allocator, hold(allocator, 30 * MiB));
  EXPECT_EQ(statistics.allocated_bytes.all.peak, 30 * MiB);
  allocator.reset_peak();
  EXPECT_EQ(statistics.allocated_bytes.all.peak, 0);
  EXPECT_EQ(statistics.reserved_bytes.all.peak, 30 * MiB);
}

TEST_F(ACachingAllocator, GivesEverythingBackWhenItGoes) {
  {
    CachingAllocator brief(memory, {.segments = SegmentKind::expandable});
    hold(brief, 30 * MiB);
    CachingAllocator other(memory, CachingRules());
    const HeldBlock block = hold(other, 30 * MiB);
    other.record_stream(block.id, 1);
    other.free(block.id);
    hold(other, 10);
  }
  EXPECT_EQ(memory.free_bytes(), GiB);
}

TEST(ACachingAllocatorWithSplitMax, TakesItsOwnSegmentForALargeRequestAndNeverSplitsIt) {
  SimulatedMemory memory(GiB);
  CachingAllocator allocator(memory, {.split_max_bytes = 32 * MiB});
  const HeldBlock large = hold(allocator, 100 * MiB);
  EXPECT_EQ(allocator.statistics().oversize_allocations.current, 1);
  EXPECT_EQ(allocator.statistics().oversize_segments.current, 1);
  let_go(allocator, large);
  EXPECT_NE(hold(allocator, 20 * MiB).address, large.address);
  EXPECT_NE(hold(allocator, 80 * MiB).address, large.address) << "20 MiB too large";
  const HeldBlock near = hold(allocator, 81 * MiB);
  EXPECT_EQ(near.address, large.address);
  EXPECT_EQ(near.bytes, 100 * MiB);
}

TEST(ACachingAllocatorWithSplitMax, GivesBackJustEnoughLargeOnesFirst) {
  SimulatedMemory memory(300 * MiB);
  CachingAllocator allocator(memory, {.split_max_bytes = 32 * MiB});
  const HeldBlock small = hold(allocator, 30 * MiB);
  const HeldBlock a = hold(allocator, 100 * MiB);
  const HeldBlock b = hold(allocator, 60 * MiB);
  const HeldBlock c = hold(allocator, 90 * MiB);
  for (const HeldBlock& block : {small, a, b, c}) let_go(allocator, block);
  hold(allocator, 125 * MiB);
  EXPECT_EQ(allocator.statistics().num_alloc_retries, 0);
  EXPECT_EQ(allocator.statistics().num_device_free, 2) << "the two largest";
  EXPECT_EQ(reserved(allocator), 30 * MiB + 60 * MiB + 126 * MiB);
}

TEST(ACachingAllocatorWithGarbageCollection, GivesBackTheOldestBlocksAboveItsThreshold) {
  SimulatedMemory memory(GiB);
  CachingAllocator allocator(memory, {.garbage_collection_threshold = 0.5}, 200 * MiB);
  let_go(allocator, hold(allocator, 50 * MiB));
  for (int searches = 0; searches < 10; ++searches) let_go(allocator, hold(allocator, 60 * MiB));
  hold(allocator, 70 * MiB);
  EXPECT_EQ(reserved(allocator), 130 * MiB) << "50 were free for longer than 60";
  EXPECT_EQ(allocator.statistics().num_device_free, 1);
  EXPECT_EQ(allocator.statistics().num_sync_all_streams, 0);
}

TEST(ACachingAllocatorDeathTest, NoticesMisuse) {
  SimulatedMemory memory(GiB);
  CachingAllocator allocator(memory, CachingRules());
  const HeldBlock block = hold(allocator, 30 * MiB);
  allocator.free(block.id);
  EXPECT_DEATH(allocator.free(block.id), "a block is one that the allocator made");
  const HeldBlock again = hold(allocator, 30 * MiB);
  EXPECT_EQ(again.address, block.address);
  EXPECT_DEATH(allocator.free(block.id), "a block is one that the allocator made");
  EXPECT_DEATH(allocator.record_stream(block.id, 1), "a block is one that the allocator made");
  EXPECT_DEATH(allocator.free({1000, 0}), "a block is one that the allocator made");
  EXPECT_DEATH(allocator.allocate(0, 0), "a block has bytes");
}

}  // namespace
}  // namespace stepgate
