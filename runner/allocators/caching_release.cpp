// SPDX-License-Identifier: MIT
// Memory on its way back to the device: when it is asked for, when a request needs room, and when
// blocks have not been used for long.
#include <algorithm>

#include "allocators/caching_allocator.h"

namespace stepgate {

void CachingAllocator::empty_cache() {
  require(captures_.empty(), "the cache is not emptied during a capture");
  give_back_cache();
}

// A whole free segment.
void CachingAllocator::give_back(CachedBlock& block) {
  require(!block.is_split() && !block.growable, "a segment is given back whole");
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

// With split_max: one free block that is large enough by itself, or else the largest ones until
// together they are. Whether there is room for the request now.
bool CachingAllocator::give_back_too_large_ones(const Request& request) {
  if (!rules_.split_max_bytes || rules_.segments == SegmentKind::growable) return false;
  auto& free = request.pool.free;
  const std::int64_t needed = std::max(request.bytes, *rules_.split_max_bytes);
  auto found = free.lower_bound({request.stream, needed, 0, nullptr});
  if (found != free.end() && found->stream == request.stream) {
    give_back(*found->block);
    return true;
  }
  std::int64_t given_back = 0;
  while (given_back < needed && found != free.begin()) {
    const auto largest = std::prev(found);
    if (largest->stream != request.stream || !rules_.too_large_to_split(largest->bytes)) break;
    given_back += largest->bytes;
    give_back(*largest->block);
    found = free.lower_bound({request.stream, needed, 0, nullptr});
  }
  return given_back >= needed;
}

// Everything free that lies in a segment of its own, after the streams are done with what was
// freed.
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
  std::vector<CachedBlock*> growing;  // unmapping changes the set
  for (auto free = pool.free.begin(); free != pool.free.end();) {
    CachedBlock& block = *(free++)->block;
    if (block.growable) {
      growing.push_back(&block);
    } else if (!block.is_split()) {
      give_back(block);
    }
  }
  for (CachedBlock* block : growing) unmap(*block);
}

// Large whole segments, those first that were free for at least the average time, until the rest is
// below the threshold. Waits for nothing.
void CachingAllocator::collect_garbage() {
  const auto threshold = static_cast<std::int64_t>(rules_.garbage_collection_threshold *
                                                   static_cast<double>(*cap_bytes_));
  const std::int64_t excess = statistics_.reserved_bytes.all.current - threshold;
  if (excess <= 0) return;
  std::int64_t ages = 0;
  std::int64_t candidates = 0;
  for (const BlockBySize& free : large_.free) {
    if (free.block->is_split()) continue;
    ages += large_.age(*free.block);
    ++candidates;
  }
  std::int64_t collected = 0;
  for (bool any = true; any && candidates > 0 && collected < excess;) {
    const double old = static_cast<double>(ages) / static_cast<double>(candidates);
    any = false;
    for (auto free = large_.free.begin(); free != large_.free.end();) {
      CachedBlock& block = *(free++)->block;
      const std::int64_t age = large_.age(block);
      if (block.is_split() || static_cast<double>(age) < old) continue;
      any = true;
      collected += block.bytes;
      ages -= age;
      --candidates;
      give_back(block);
    }
  }
}

}  // namespace stepgate
