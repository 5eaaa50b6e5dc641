// SPDX-License-Identifier: MIT
// The one set of statistics that every allocator keeps, under the names and with the meanings of
// torch.cuda.memory_stats. Counting only; the allocator decides when something counts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

// Current amount, peak since its reset, and totals of increases and decreases.
struct MemoryStat {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;
  std::int64_t freed = 0;

  void increase(std::int64_t amount) {
    current += amount;
    if (current > peak) peak = current;
    allocated += amount;
  }
  void decrease(std::int64_t amount) {
    current -= amount;
    freed += amount;
  }
  // Increases or decreases by the amount, depending on its sign.
  void change(std::int64_t amount) { amount < 0 ? decrease(-amount) : increase(amount); }
  void reset_peak() { peak = current; }

  bool operator==(const MemoryStat&) const = default;
};

enum class PoolSize { small, large };

// Statistics of all pools together and of each pool size.
struct PooledStat {
  MemoryStat all, small_pool, large_pool;

  void increase(PoolSize size, std::int64_t amount) {
    all.increase(amount);
    of(size).increase(amount);
  }
  void decrease(PoolSize size, std::int64_t amount) {
    all.decrease(amount);
    of(size).decrease(amount);
  }
  void change(PoolSize size, std::int64_t amount) {
    all.change(amount);
    of(size).change(amount);
  }
  MemoryStat& of(PoolSize size) { return size == PoolSize::small ? small_pool : large_pool; }

  bool operator==(const PooledStat&) const = default;
};

struct MemoryStatistics {
  PooledStat allocation;      // blocks held by the program
  PooledStat segment;         // segments taken from the device
  PooledStat active;          // blocks held or still used by a stream
  PooledStat inactive_split;  // free blocks of segments with an active part
                              // inactive_split does not include blocks of expandable segments.
  PooledStat allocated_bytes;
  PooledStat reserved_bytes;
  PooledStat active_bytes;
  PooledStat inactive_split_bytes;
  PooledStat requested_bytes;  // requested sizes of active blocks

  MemoryStat oversize_allocations;  // blocks too large to be split
  MemoryStat oversize_segments;

  std::int64_t num_alloc_retries = 0;  // retries after freeing the whole cache
  std::int64_t num_ooms = 0;
  std::int64_t num_sync_all_streams = 0;
  std::int64_t num_device_alloc = 0;
  std::int64_t num_device_free = 0;

  void reset_peak();

  bool operator==(const MemoryStatistics&) const = default;
};

// Every number has a name: "reserved_bytes.all.peak", "num_ooms". Reports and recordings use these
// functions and name no members themselves.
std::size_t statistic_count();
std::string name_of_statistic(std::size_t index);
std::int64_t value_of_statistic(const MemoryStatistics&, std::size_t index);
// Returns nullopt when no statistic has that name.
std::optional<std::size_t> statistic_named(std::string_view name);

}  // namespace stepgate
