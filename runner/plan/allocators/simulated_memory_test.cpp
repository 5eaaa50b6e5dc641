// SPDX-License-Identifier: MIT
#include "plan/allocators/simulated_memory.h"

#include <gtest/gtest.h>

#include "plan/allocators/testing/allocator_by_hand.h"

namespace stepgate {
namespace {

TEST(SimulatedMemory, RefusesWhatIsBeyondItsCapacity) {
  SimulatedMemory memory(10 * MiB);
  EXPECT_TRUE(memory.take_segment(8 * MiB));
  EXPECT_FALSE(memory.take_segment(2 * MiB + 1));
  EXPECT_TRUE(memory.take_segment(2 * MiB));
  EXPECT_EQ(memory.free_bytes(), 0);
}

TEST(SimulatedMemory, UsesTheLowestAddressesAgain) {
  SimulatedMemory memory(100 * MiB);
  const Address first = *memory.take_segment(20 * MiB);
  const Address second = *memory.take_segment(2 * MiB);
  EXPECT_EQ(second, first + 20 * MiB);
  memory.give_back_segment(first, 20 * MiB);
  EXPECT_EQ(*memory.take_segment(22 * MiB), second + 2 * MiB) << "the hole is too small";
  EXPECT_EQ(*memory.take_segment(12 * MiB), first);
  EXPECT_EQ(*memory.take_segment(8 * MiB), first + 12 * MiB);
}

TEST(SimulatedMemory, CountsMappedPagesAndNotReservedAddresses) {
  SimulatedMemory memory(100 * MiB);
  const Address address = memory.reserve_addresses(1000 * MiB);
  EXPECT_EQ(memory.free_bytes(), 100 * MiB);
  EXPECT_TRUE(memory.map_pages(address, 60 * MiB, 20 * MiB));
  EXPECT_FALSE(memory.map_pages(address + 60 * MiB, 60 * MiB, 20 * MiB)) << "all or nothing";
  EXPECT_EQ(memory.free_bytes(), 40 * MiB);
  memory.unmap_pages(address + 20 * MiB, 20 * MiB, 20 * MiB, 0);
  EXPECT_EQ(memory.free_bytes(), 60 * MiB);
  EXPECT_EQ(memory.waits(), 1);
}

TEST(SimulatedMemory, LetsPointsPassInTheOrderOfTheirStream) {
  SimulatedMemory memory(MiB);
  const StreamPoint early = memory.record_point(1);
  const StreamPoint late = memory.record_point(1);
  const StreamPoint other = memory.record_point(2);
  EXPECT_FALSE(memory.has_passed(early));
  memory.wait_for(late);
  EXPECT_TRUE(memory.has_passed(early));
  EXPECT_FALSE(memory.has_passed(other));
  memory.finish(2);
  const StreamPoint later = memory.record_point(2);
  EXPECT_TRUE(memory.has_passed(other));
  EXPECT_FALSE(memory.has_passed(later));
  memory.wait_for_all();
  EXPECT_TRUE(memory.has_passed(later));
  EXPECT_EQ(memory.waits(), 2);
}

TEST(SimulatedMemoryDeathTest, NoticesASegmentThatIsGivenBackTwice) {
  SimulatedMemory memory(10 * MiB);
  const Address address = *memory.take_segment(MiB);
  memory.give_back_segment(address, MiB);
  EXPECT_DEATH(memory.give_back_segment(address, MiB), "only a taken segment is given back");
}

}  // namespace
}  // namespace stepgate
