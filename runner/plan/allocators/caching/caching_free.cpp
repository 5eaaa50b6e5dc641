// SPDX-License-Identifier: MIT
// Returns blocks to the cache: at once, or when other streams are done with them. Also handles
// captures, during which no stream may be queried.
#include <algorithm>

#include "plan/allocators/caching/caching_allocator.h"

namespace stepgate {
namespace {

void add_once(std::vector<StreamId>& streams, StreamId stream) {
  if (std::ranges::find(streams, stream) == streams.end()) streams.push_back(stream);
}

}  // namespace

void CachingAllocator::free(BlockId id) {
  CachedBlock& block = blocks_.at(id);
  require(block.held, "a block is freed once");
  block.held = false;
  blocks_.renew(block);
  statistics_.allocation.decrease(block.pool->size, 1);
  statistics_.allocated_bytes.decrease(block.pool->size, block.bytes);
  if (rules_.too_large_to_split(block.bytes)) statistics_.oversize_allocations.decrease(1);
  if (block.used_by.empty()) {
    make_free(block);
  } else if (captures_.empty()) {
    record_points(block);
  } else {
    postponed_.push_back(&block);
  }
}

void CachingAllocator::record_stream(BlockId id, StreamId stream) {
  CachedBlock& block = blocks_.at(id);
  require(block.held, "only a block that is held is used");
  if (stream == block.stream) return;  // the order within the block's own stream is enough
  add_once(block.used_by, stream);
  if (!captures_.empty()) add_once(block.used_by_capturing, stream);
}

void CachingAllocator::make_free(CachedBlock& block) {
  BlockPool& pool = *block.pool;
  const std::int64_t freed_bytes = block.bytes;
  std::int64_t split_blocks = 0;
  std::int64_t split_bytes = 0;
  for (CachedBlock* neighbour : {block.before, block.after}) {
    if (const std::int64_t merged = merge(block, neighbour); merged > 0) {
      --split_blocks;
      split_bytes -= merged;
    }
  }
  pool.put(block);
  if (block.is_split()) {
    ++split_blocks;
    split_bytes += block.bytes;
  }
  if (!block.expandable) {
    statistics_.inactive_split.change(pool.size, split_blocks);
    statistics_.inactive_split_bytes.change(pool.size, split_bytes);
  }
  statistics_.active.decrease(pool.size, 1);
  statistics_.active_bytes.decrease(pool.size, freed_bytes);
  statistics_.requested_bytes.decrease(pool.size, block.requested_bytes);
  block.requested_bytes = 0;
}

// Merges `neighbour` into `into` if both may be merged. Returns the size of the neighbour, which no
// longer exists; otherwise 0.
std::int64_t CachingAllocator::merge(CachedBlock& into, CachedBlock* neighbour) {
  if (!neighbour || !neighbour->is_free() || neighbour->mapped != into.mapped) return 0;
  if (neighbour->mapped) {
    into.pool->take(*neighbour);
  } else {
    into.pool->take_unmapped(*neighbour);
  }
  if (into.before == neighbour) {
    into.address = neighbour->address;
    into.before = neighbour->before;
    if (into.before) into.before->after = &into;
  } else {
    into.after = neighbour->after;
    if (into.after) into.after->before = &into;
  }
  const std::int64_t bytes = neighbour->bytes;
  into.bytes += bytes;
  blocks_.give_back(*neighbour);
  return bytes;
}

void CachingAllocator::record_points(CachedBlock& block) {
  for (const StreamId stream : block.used_by) {
    ++block.open_points;
    points_[stream].push_back({memory_.record_point(stream), &block});
  }
  block.used_by.clear();
  block.used_by_capturing.clear();
}

// Captured work runs when its graph is launched, from the graph's own memory. So only uses from
// before the capture get a stream point to wait for.
void CachingAllocator::record_postponed_points() {
  for (CachedBlock* block : postponed_) {
    std::erase_if(block->used_by, [&](StreamId stream) {
      return std::ranges::find(block->used_by_capturing, stream) != block->used_by_capturing.end();
    });
    record_points(*block);
    if (block->open_points == 0) make_free(*block);
  }
  postponed_.clear();
}

void CachingAllocator::free_passed() {
  if (!postponed_.empty()) record_postponed_points();
  for (auto stream = points_.begin(); stream != points_.end();) {
    auto& open = stream->second;
    while (!open.empty() && memory_.has_passed(open.front().point)) {
      CachedBlock& block = *open.front().block;
      open.pop_front();
      if (--block.open_points == 0) make_free(block);
    }
    stream = open.empty() ? points_.erase(stream) : std::next(stream);
  }
}

void CachingAllocator::free_after_waiting() {
  ++statistics_.num_sync_all_streams;
  record_postponed_points();
  for (auto& [stream, open] : points_) {
    for (const auto& [point, block] : open) {
      memory_.wait_for(point);
      if (--block->open_points == 0) make_free(*block);
    }
  }
  points_.clear();
}

void CachingAllocator::begin_capture(int pool, std::vector<StreamId> streams) {
  require(std::ranges::none_of(captures_, [&](const Capture& c) { return c.pool == pool; }),
          "a pool serves one capture at a time");
  auto& capture_pool = capture_pools_[pool];
  if (capture_pool) {
    require(capture_pool->graphs > 0, "a pool is shared while a graph uses it");
    ++capture_pool->graphs;
  } else {
    capture_pool = std::make_unique<CapturePool>();
    capture_pool->id = pool;
  }
  captures_.push_back({pool, std::move(streams)});
}

void CachingAllocator::end_capture(int pool) {
  require(std::erase_if(captures_, [&](const Capture& c) { return c.pool == pool; }) == 1,
          "only a capture that was begun ends");
}

void CachingAllocator::release_capture(int pool) {
  const auto found = capture_pools_.find(pool);
  require(found != capture_pools_.end() && found->second->graphs > 0, "a graph is released once");
  --found->second->graphs;
}

}  // namespace stepgate
