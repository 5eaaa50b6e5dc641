// SPDX-License-Identifier: MIT
#include "plan/allocators/memory_statistics.h"

#include <gtest/gtest.h>

#include <set>

namespace stepgate {
namespace {

TEST(MemoryStatistics, HaveTheNamesOfTorchCudaMemoryStats) {
  for (const std::string_view name :
       {"allocation.all.current", "segment.small_pool.peak", "active.large_pool.allocated",
        "inactive_split.all.freed", "allocated_bytes.all.peak", "reserved_bytes.small_pool.freed",
        "active_bytes.large_pool.current", "inactive_split_bytes.all.current",
        "requested_bytes.all.allocated", "oversize_allocations.current", "oversize_segments.peak",
        "num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc",
        "num_device_free"}) {
    EXPECT_TRUE(statistic_named(name)) << name;
  }
  EXPECT_FALSE(statistic_named("allocated_bytes.all"));
  EXPECT_EQ(statistic_count(), 9U * 3 * 4 + 2 * 4 + 5);
}

TEST(MemoryStatistics, HaveEachNameOnce) {
  std::set<std::string> names;
  for (std::size_t index = 0; index < statistic_count(); ++index) {
    names.insert(name_of_statistic(index));
    EXPECT_EQ(statistic_named(name_of_statistic(index)), index);
  }
  EXPECT_EQ(names.size(), statistic_count());
}

TEST(MemoryStatistics, AreReachedByTheirNames) {
  MemoryStatistics statistics;
  statistics.reserved_bytes.increase(PoolSize::large, 100);
  statistics.reserved_bytes.decrease(PoolSize::large, 30);
  statistics.oversize_segments.increase(2);
  statistics.num_device_free = 7;
  const auto value = [&](std::string_view name) {
    return value_of_statistic(statistics, *statistic_named(name));
  };
  EXPECT_EQ(value("reserved_bytes.all.current"), 70);
  EXPECT_EQ(value("reserved_bytes.large_pool.peak"), 100);
  EXPECT_EQ(value("reserved_bytes.all.freed"), 30);
  EXPECT_EQ(value("reserved_bytes.small_pool.allocated"), 0);
  EXPECT_EQ(value("oversize_segments.allocated"), 2);
  EXPECT_EQ(value("num_device_free"), 7);
  std::int64_t sum = 0;
  for (std::size_t index = 0; index < statistic_count(); ++index)
    sum += value_of_statistic(statistics, index);
  EXPECT_EQ(sum, 2 * (70 + 100 + 100 + 30) + 3 * 2 + 7) << "nothing else was counted";
}

TEST(MemoryStatistics, ForgetPeaksAndKeepTheRest) {
  MemoryStatistics statistics;
  statistics.active.increase(PoolSize::small, 5);
  statistics.active.decrease(PoolSize::small, 4);
  statistics.oversize_allocations.increase(3);
  statistics.oversize_allocations.decrease(3);
  statistics.reset_peak();
  EXPECT_EQ(statistics.active.all, (MemoryStat{1, 1, 5, 4}));
  EXPECT_EQ(statistics.active.small_pool, (MemoryStat{1, 1, 5, 4}));
  EXPECT_EQ(statistics.oversize_allocations, (MemoryStat{0, 0, 3, 3}));
}

}  // namespace
}  // namespace stepgate
