// SPDX-License-Identifier: MIT
#include "plan/allocators/first_fit_allocator.h"

#include "plan/allocators/simulated_memory.h"
#include "plan/allocators/testing/allocator_by_hand.h"

namespace stepgate {
namespace {

class AFirstFitAllocator : public testing::Test {
 protected:
  SimulatedMemory memory{200 * MiB};
  FirstFitAllocator allocator{memory};
};

TEST_F(AFirstFitAllocator, GivesASmallRequestTheWholeOfTheFirstBlockThatIsLargeEnough) {
  const HeldBlock large = hold(allocator, 100 * MiB);
  const HeldBlock fitting = hold(allocator, MiB);
  let_go(allocator, large);
  let_go(allocator, fitting);
  const HeldBlock block = hold(allocator, MiB);
  EXPECT_EQ(block.address, large.address);
  EXPECT_EQ(block.bytes, 100 * MiB);
  EXPECT_EQ(allocator.statistics().requested_bytes.all.current, MiB);
  EXPECT_EQ(allocator.statistics().allocated_bytes.all.current, 100 * MiB);
}

TEST_F(AFirstFitAllocator, RefusesWhatWouldFitInItsFreeBlocksTogether) {
  let_go(allocator, hold(allocator, 60 * MiB));
  let_go(allocator, hold(allocator, 70 * MiB));
  const Refusal refusal = refusal_of(allocator, 100 * MiB);
  EXPECT_EQ(refusal.by, RefusedBy::device);
  EXPECT_EQ(refusal.free_inside_bytes, 130 * MiB);
  EXPECT_EQ(refusal.largest_free_bytes, 70 * MiB);
  allocator.empty_cache();
  EXPECT_EQ(reserved(allocator), 0);
  hold(allocator, 100 * MiB);
}

TEST_F(AFirstFitAllocator, RespectsItsCap) {
  allocator.set_cap(10 * MiB);
  hold(allocator, 10 * MiB);
  EXPECT_EQ(refusal_of(allocator, 1).by, RefusedBy::cap);
}

TEST_F(AFirstFitAllocator, WaitsForOtherStreamsBeforeItReuses) {
  const HeldBlock block = hold(allocator, 10 * MiB, 1);
  allocator.record_stream(block.id, 2);
  let_go(allocator, block);
  EXPECT_NE(hold(allocator, 10 * MiB, 1).address, block.address);
  memory.finish(2);
  EXPECT_NE(hold(allocator, 10 * MiB, 2).address, block.address) << "of another stream";
  EXPECT_EQ(hold(allocator, 10 * MiB, 1).address, block.address);
}

TEST_F(AFirstFitAllocator, GivesPendingBlocksBackAfterWaiting) {
  const HeldBlock block = hold(allocator, 10 * MiB, 1);
  allocator.record_stream(block.id, 2);
  let_go(allocator, block);
  allocator.empty_cache();
  EXPECT_EQ(memory.waits(), 1);
  EXPECT_EQ(memory.free_bytes(), 200 * MiB);
}

}  // namespace
}  // namespace stepgate
