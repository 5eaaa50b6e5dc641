// SPDX-License-Identifier: MIT
#include "plan/allocators/testing/check_allocator.h"

#include <fmt/format.h>

namespace stepgate {
namespace {

std::optional<std::string> broken_tiling(const SegmentState& segment) {
  Address next = segment.address;
  const BlockState* before = nullptr;
  for (const BlockState& block : segment.blocks) {
    if (block.address != next)
      return fmt::format("block {:#x} does not follow its neighbour, which ends at {:#x}",
                         block.address, next);
    if (block.bytes <= 0 || block.bytes < block.requested_bytes)
      return fmt::format("block {:#x} has {} bytes for a request of {}", block.address, block.bytes,
                         block.requested_bytes);
    if (before && before->use == BlockUse::free && block.use == BlockUse::free)
      return fmt::format("block {:#x} is free, and so is the one before it", block.address);
    next += static_cast<Address>(block.bytes);
    before = &block;
  }
  if (next != segment.address + static_cast<Address>(segment.bytes))
    return fmt::format("the blocks of segment {:#x} do not fill it", segment.address);
  return std::nullopt;
}

struct Sums {
  std::int64_t segments = 0, reserved = 0, live = 0, live_bytes = 0, active = 0, active_bytes = 0,
               requested = 0, split = 0, split_bytes = 0;

  void add(const SegmentState& segment) {
    segments += segment.kind == SegmentKind::fixed;
    reserved += segment.bytes;
    for (const BlockState& block : segment.blocks) {
      live += block.use == BlockUse::live;
      live_bytes += block.use == BlockUse::live ? block.bytes : 0;
      if (block.use != BlockUse::free) {
        ++active;
        active_bytes += block.bytes;
        requested += block.requested_bytes;
      } else if (segment.blocks.size() > 1 && segment.kind == SegmentKind::fixed) {
        ++split;
        split_bytes += block.bytes;
      }
    }
  }
};

struct Compared {
  std::string_view name;
  std::int64_t Sums::*sum;
  PooledStat MemoryStatistics::*stat;
};

constexpr Compared compared[] = {
    {"segment", &Sums::segments, &MemoryStatistics::segment},
    {"reserved_bytes", &Sums::reserved, &MemoryStatistics::reserved_bytes},
    {"allocation", &Sums::live, &MemoryStatistics::allocation},
    {"allocated_bytes", &Sums::live_bytes, &MemoryStatistics::allocated_bytes},
    {"active", &Sums::active, &MemoryStatistics::active},
    {"active_bytes", &Sums::active_bytes, &MemoryStatistics::active_bytes},
    {"requested_bytes", &Sums::requested, &MemoryStatistics::requested_bytes},
    {"inactive_split", &Sums::split, &MemoryStatistics::inactive_split},
    {"inactive_split_bytes", &Sums::split_bytes, &MemoryStatistics::inactive_split_bytes},
};

std::optional<std::string> broken_sum(const Sums& sums, const MemoryStatistics& statistics,
                                      MemoryStat PooledStat::*pool, std::string_view pool_name) {
  for (const Compared& row : compared) {
    const MemoryStat& stat = statistics.*row.stat.*pool;
    const std::int64_t sum = sums.*row.sum;
    if (stat.current != sum)
      return fmt::format("{}.{} is {}, but the blocks say {}", row.name, pool_name, stat.current,
                         sum);
    if (stat.current < 0 || stat.peak < stat.current || stat.current != stat.allocated - stat.freed)
      return fmt::format("{}.{} is {} with peak {}, {} in and {} out", row.name, pool_name,
                         stat.current, stat.peak, stat.allocated, stat.freed);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> broken_property(const MemoryAllocator& allocator) {
  return broken_property(allocator.snapshot(), allocator.statistics());
}

std::optional<std::string> broken_property(std::span<const SegmentState> snapshot,
                                           const MemoryStatistics& statistics) {
  Sums all, small, large;
  Address end_of_last = 0;
  for (const SegmentState& segment : snapshot) {
    if (segment.address < end_of_last)
      return fmt::format("segment {:#x} overlaps the one before it", segment.address);
    end_of_last = segment.address + static_cast<Address>(segment.bytes);
    if (auto broken = broken_tiling(segment)) return broken;
    all.add(segment);
    (segment.pool == PoolSize::small ? small : large).add(segment);
  }
  if (auto broken = broken_sum(all, statistics, &PooledStat::all, "all")) return broken;
  if (auto broken = broken_sum(small, statistics, &PooledStat::small_pool, "small_pool"))
    return broken;
  return broken_sum(large, statistics, &PooledStat::large_pool, "large_pool");
}

}  // namespace stepgate
