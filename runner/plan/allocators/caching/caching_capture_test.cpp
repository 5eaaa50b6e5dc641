// SPDX-License-Identifier: MIT
// The caching allocator while graphs are captured.
#include "plan/allocators/caching/caching_allocator.h"
#include "plan/allocators/simulated_memory.h"
#include "plan/allocators/testing/allocator_by_hand.h"

namespace stepgate {
namespace {

class ACapturingAllocator : public testing::Test {
 protected:
  SimulatedMemory memory{200 * MiB};
  CachingAllocator allocator{memory, CachingRules()};
};

TEST_F(ACapturingAllocator, ServesCapturedStreamsFromAPoolOfTheirOwn) {
  const HeldBlock outside = hold(allocator, 30 * MiB, 1);
  let_go(allocator, outside);
  allocator.begin_capture(7, {1});
  const HeldBlock captured = hold(allocator, 30 * MiB, 1);
  EXPECT_NE(captured.address, outside.address);
  let_go(allocator, captured);
  EXPECT_EQ(hold(allocator, 30 * MiB, 1).address, captured.address) << "reused inside the pool";
  hold(allocator, 10 * MiB, 2);
  allocator.end_capture(7);
  EXPECT_EQ(hold(allocator, 30 * MiB, 1).address, outside.address);
  int of_the_graph = 0;
  for (const SegmentState& segment : allocator.snapshot())
    of_the_graph += segment.capture_pool == 7;
  EXPECT_EQ(of_the_graph, 1);
}

TEST_F(ACapturingAllocator, KeepsTheMemoryOfAGraphUntilTheGraphIsGone) {
  allocator.begin_capture(7, {1});
  let_go(allocator, hold(allocator, 30 * MiB, 1));
  allocator.end_capture(7);
  allocator.empty_cache();
  EXPECT_EQ(reserved(allocator), 30 * MiB);
  allocator.release_capture(7);
  EXPECT_EQ(reserved(allocator), 30 * MiB);
  allocator.empty_cache();
  EXPECT_EQ(reserved(allocator), 0);
}

TEST_F(ACapturingAllocator, KeepsASharedPoolUntilTheLastGraphIsGone) {
  allocator.begin_capture(7, {1});
  let_go(allocator, hold(allocator, 30 * MiB, 1));
  allocator.end_capture(7);
  allocator.begin_capture(7, {1});
  let_go(allocator, hold(allocator, 30 * MiB, 1));
  allocator.end_capture(7);
  EXPECT_EQ(reserved(allocator), 30 * MiB);
  allocator.release_capture(7);
  allocator.empty_cache();
  EXPECT_EQ(reserved(allocator), 30 * MiB);
  allocator.release_capture(7);
  allocator.empty_cache();
  EXPECT_EQ(reserved(allocator), 0);
}

TEST_F(ACapturingAllocator, GivesNothingBackDuringACapture) {
  let_go(allocator, hold(allocator, 150 * MiB, 2));
  allocator.begin_capture(7, {1});
  refusal_of(allocator, 100 * MiB, 1);
  EXPECT_EQ(allocator.statistics().num_alloc_retries, 0);
  allocator.end_capture(7);
  hold(allocator, 100 * MiB, 1);
  EXPECT_EQ(allocator.statistics().num_alloc_retries, 1);
}

TEST_F(ACapturingAllocator, AsksNoStreamDuringACapture) {
  const HeldBlock before = hold(allocator, 30 * MiB, 1);
  const HeldBlock during = hold(allocator, 40 * MiB, 1);
  allocator.record_stream(before.id, 2);
  allocator.begin_capture(7, {3});
  allocator.record_stream(during.id, 2);
  let_go(allocator, before);
  let_go(allocator, during);
  hold(allocator, 1 * MiB, 1);
  EXPECT_EQ(allocator.statistics().active_bytes.large_pool.current, 70 * MiB);
  allocator.end_capture(7);
  EXPECT_EQ(hold(allocator, 40 * MiB, 1).address, during.address) << "captured work runs elsewhere";
  EXPECT_NE(hold(allocator, 30 * MiB, 1).address, before.address);
  memory.finish(2);
  EXPECT_EQ(hold(allocator, 30 * MiB, 1).address, before.address);
}

TEST_F(ACapturingAllocator, WorksWithExpandableSegmentsToo) {
  CachingAllocator growing(memory, {.segments = SegmentKind::expandable});
  growing.begin_capture(7, {1});
  let_go(growing, hold(growing, 30 * MiB, 1));
  growing.end_capture(7);
  hold(growing, 30 * MiB, 1);
  EXPECT_EQ(reserved(growing), 80 * MiB);
  growing.release_capture(7);
  growing.empty_cache();
  EXPECT_EQ(reserved(growing), 40 * MiB);
}

}  // namespace
}  // namespace stepgate
