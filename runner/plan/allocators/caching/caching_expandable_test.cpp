// SPDX-License-Identifier: MIT
// The caching allocator with expandable segments.
#include "plan/allocators/caching/caching_allocator.h"
#include "plan/allocators/simulated_memory.h"
#include "plan/allocators/testing/allocator_by_hand.h"

namespace stepgate {
namespace {

class AGrowingAllocator : public testing::Test {
 protected:
  SimulatedMemory memory{200 * MiB};
  CachingAllocator allocator{memory, {.segments = SegmentKind::expandable}};
  const MemoryStatistics& statistics = allocator.statistics();
};

TEST_F(AGrowingAllocator, MapsAsManyPagesAsARequestNeeds) {
  const HeldBlock first = hold(allocator, 25 * MiB);
  EXPECT_EQ(first.bytes, 25 * MiB);
  EXPECT_EQ(reserved(allocator), 40 * MiB);
  const HeldBlock second = hold(allocator, 25 * MiB);
  EXPECT_EQ(second.address, first.address + 25 * MiB) << "it begins in what was left";
  EXPECT_EQ(reserved(allocator), 60 * MiB);
  hold(allocator, 100);
  EXPECT_EQ(reserved(allocator), 62 * MiB);
  EXPECT_EQ(statistics.segment.all.current, 0) << "PyTorch counts no expandable segments";
  EXPECT_EQ(statistics.num_device_alloc, 3);
}

TEST_F(AGrowingAllocator, HasOneSegmentForEachStreamAndPool) {
  hold(allocator, 5 * MiB, 1);
  hold(allocator, 5 * MiB, 2);
  hold(allocator, 5, 2);
  const std::vector<SegmentState> segments = allocator.snapshot();
  ASSERT_EQ(segments.size(), 3U);
  for (const SegmentState& segment : segments) EXPECT_EQ(segment.kind, SegmentKind::expandable);
  EXPECT_EQ(reserved(allocator), 42 * MiB);
}

TEST_F(AGrowingAllocator, ServesTheShapeThatGrewFromWhatItHasAndALittleMore) {
  std::vector<HeldBlock> step;
  for (int layer = 0; layer < 5; ++layer) step.push_back(hold(allocator, 20 * MiB));
  for (const HeldBlock& block : step) let_go(allocator, block);
  step.clear();
  for (int layer = 0; layer < 5; ++layer) step.push_back(hold(allocator, 21 * MiB));
  EXPECT_EQ(reserved(allocator), 120 * MiB) << "105 MiB in pages of 20, where fixed ones take 205";
}

TEST_F(AGrowingAllocator, FillsAHoleBeforeItUsesItsOpenEnd) {
  const HeldBlock hole = hold(allocator, 8 * MiB);
  hold(allocator, 7 * MiB);
  let_go(allocator, hole);
  EXPECT_EQ(hold(allocator, 4 * MiB).address, hole.address) << "the end has only 5 MiB, but grows";
  EXPECT_EQ(hold(allocator, 5 * MiB).address, hole.address + 15 * MiB);
}

TEST_F(AGrowingAllocator, UnmapsWholeFreePagesAndKeepsTheRest) {
  const HeldBlock first = hold(allocator, 30 * MiB);
  const HeldBlock second = hold(allocator, 60 * MiB);
  hold(allocator, 10 * MiB);
  EXPECT_EQ(reserved(allocator), 100 * MiB);
  let_go(allocator, second);
  allocator.empty_cache();
  EXPECT_EQ(reserved(allocator), 60 * MiB) << "of 30 to 90 MiB the pages at 40 and 60";
  EXPECT_EQ(broken_property(allocator), std::nullopt);
  EXPECT_EQ(allocator.snapshot().size(), 2U);
  let_go(allocator, first);
  const HeldBlock again = hold(allocator, 45 * MiB);
  EXPECT_EQ(again.address, first.address) << "the gap is filled first";
  EXPECT_EQ(reserved(allocator), 80 * MiB);
}

TEST_F(AGrowingAllocator, UnmapsBeforeItRefuses) {
  let_go(allocator, hold(allocator, 150 * MiB, 1));
  hold(allocator, 150 * MiB, 2);
  EXPECT_EQ(statistics.num_alloc_retries, 1);
  EXPECT_EQ(reserved(allocator), 160 * MiB);
  const Refusal refusal = refusal_of(allocator, 60 * MiB, 1);
  EXPECT_EQ(refusal.by, RefusedBy::device);
  EXPECT_EQ(refusal.device_free_bytes, 40 * MiB);
}

TEST_F(AGrowingAllocator, RefusesMoreThanTheDeviceHasWithoutReservingAddresses) {
  EXPECT_EQ(refusal_of(allocator, GiB).by, RefusedBy::device);
  EXPECT_EQ(allocator.snapshot().size(), 0U);
}

// PyTorch compares the cap with the segment that a fixed allocator would take, and maps whole
// pages.
TEST_F(AGrowingAllocator, MayPassItsCapByLessThanAPage) {
  allocator.set_cap(30 * MiB);
  hold(allocator, 25 * MiB);
  EXPECT_EQ(reserved(allocator), 40 * MiB);
  EXPECT_EQ(refusal_of(allocator, 30 * MiB).by, RefusedBy::cap);
}

TEST_F(AGrowingAllocator, ReturnsToNothing) {
  for (const StreamId stream : {0, 1}) {
    const HeldBlock large = hold(allocator, 33 * MiB, stream);
    const HeldBlock small = hold(allocator, 33, stream);
    let_go(allocator, large);
    let_go(allocator, small);
  }
  allocator.empty_cache();
  EXPECT_EQ(memory.free_bytes(), 200 * MiB);
  EXPECT_EQ(allocator.snapshot().size(), 0U);
  EXPECT_EQ(statistics.num_device_free, 4);
}

}  // namespace
}  // namespace stepgate
