// SPDX-License-Identifier: MIT
// Memory on its way back to the device: when it is asked for, when a request needs room, and when
// blocks have not been used for long.
#include <algorithm>

#include "plan/allocators/caching/caching_allocator.h"

namespace stepgate {

void CachingAllocator::empty_cache() {
  require(captures_.empty(), "the cache is not emptied during a capture");
  give_back_cache();
}

// Gives a whole free segment back to the device.
void CachingAllocator::give_back(CachedBlock& block) {
  require(!block.is_split() && !block.expandable, "a segment is given back whole");
  BlockPool& pool = *block.pool;
  ++statistics_.num_device_free;
  memory_.give_back_segment(block.address, block.bytes);
  if (pool.owner) --pool.owner->segments;
  statistics_.segment.decrease(pool.size, 1);
  statistics_.reserved_bytes.decrease(pool.size, block.bytes);
  if (rules_.too_large_to_split(block.bytes)) statistics_.oversize_segments.decrease(1);
  pool.take(block);
  blocks_.give_back(block);
}

// With max_split_size: gives back one free block that is large enough, or else the largest ones
// until their sum is. Returns whether the request has room now.
bool CachingAllocator::give_back_too_large_ones(const Request& request) {
  if (!rules_.split_max_bytes || rules_.segments == SegmentKind::expandable) return false;
  FreeBlocks& free = request.pool.free;
  const std::int64_t needed = std::max(request.bytes, *rules_.split_max_bytes);
  if (CachedBlock* enough = free.smallest_of_at_least(needed, request.stream)) {
    give_back(*enough);
    return true;
  }
  std::int64_t given_back = 0;
  while (given_back < needed) {
    CachedBlock* largest = free.largest(request.stream);
    if (!largest || !rules_.too_large_to_split(largest->bytes)) break;
    given_back += largest->bytes;
    give_back(*largest);
  }
  return given_back >= needed;
}

// Waits for the streams, then gives back every segment that is wholly free.
bool CachingAllocator::give_back_cache() {
  free_after_waiting();
  give_back_free_of(large_);
  give_back_free_of(small_);
  for (auto pool = capture_pools_.begin(); pool != capture_pools_.end();) {
    if (pool->second->graphs == 0) {
      give_back_free_of(pool->second->small);
      give_back_free_of(pool->second->large);
    }
    const bool gone = pool->second->graphs == 0 && pool->second->segments == 0;
    pool = gone ? capture_pools_.erase(pool) : std::next(pool);
  }
  return true;
}

void CachingAllocator::give_back_free_of(BlockPool& pool) {
  for (CachedBlock* block : pool.free.all()) {
    if (block->expandable) {
      unmap(*block);
    } else if (!block->is_split()) {
      give_back(*block);
    }
  }
}

// Gives back large, wholly free segments that were free for at least the average time, the oldest
// first, until the rest is below the threshold. Does not wait.
void CachingAllocator::collect_garbage() {
  const auto threshold = static_cast<std::int64_t>(rules_.garbage_collection_threshold *
                                                   static_cast<double>(*cap_bytes_));
  const std::int64_t excess = statistics_.reserved_bytes.all.current - threshold;
  if (excess <= 0) return;
  std::vector<CachedBlock*> whole = large_.free.all();
  std::erase_if(whole, [](const CachedBlock* block) { return block->is_split(); });
  std::int64_t ages = 0;
  for (const CachedBlock* block : whole) ages += large_.age(*block);
  std::int64_t collected = 0;
  while (!whole.empty() && collected < excess) {
    const double old = static_cast<double>(ages) / static_cast<double>(whole.size());
    // At least one block is as old as the average, so this loop makes progress.
    std::erase_if(whole, [&](CachedBlock* block) {
      const std::int64_t age = large_.age(*block);
      if (static_cast<double>(age) < old) return false;
      collected += block->bytes;
      ages -= age;
      give_back(*block);
      return true;
    });
  }
}

}  // namespace stepgate
