// SPDX-License-Identifier: MIT
// Finding a block for a request: which attempts are made, in which order.
#include "plan/allocators/caching/caching_allocator.h"

#include <algorithm>
#include <bit>

namespace stepgate {

CachingAllocator::CachingAllocator(DeviceMemory& memory, const CachingRules& rules,
                                   std::optional<std::int64_t> cap_bytes)
    : memory_(memory), rules_(rules), cap_bytes_(cap_bytes) {
  require(rules.round_divisions >= 0 &&
              (rules.round_divisions == 0 ||
               std::has_single_bit(static_cast<std::uint64_t>(rules.round_divisions))),
          "sizes are rounded to a power of two of divisions");
  require(!rules.split_max_bytes || *rules.split_max_bytes > split_max_above_bytes,
          "blocks that are not split are larger than a shared segment");
}

CachingAllocator::~CachingAllocator() {
  for (auto& [stream, points] : points_) {
    for (const OpenPoint& open : points) memory_.wait_for(open.point);
  }
  for (const SegmentState& segment : snapshot()) {
    if (segment.kind == SegmentKind::fixed) {
      memory_.give_back_segment(segment.address, segment.bytes);
    } else {
      memory_.unmap_pages(segment.address, segment.bytes, page_size(segment.pool), segment.stream);
    }
  }
}

BlockOrRefusal CachingAllocator::allocate(std::int64_t bytes, StreamId stream) {
  require(bytes > 0, "a block has bytes");
  if (bytes > largest_request_bytes) {
    refused_by_ = RefusedBy::size;
    return refuse({bytes, bytes, bytes, stream, large_});
  }
  if (captures_.empty()) free_passed();  // CUDA allows no event query during a capture
  const std::int64_t rounded = rounded_size(bytes, rules_);
  const Request request{bytes, rounded, segment_size(rounded), stream, pool_of(rounded, stream)};
  CachedBlock* block = find_free(request);
  if (!block) block = take_new(request);
  if (!block) {
    ++statistics_.num_ooms;
    return refuse(request);
  }
  return hand_out(*block, request);
}

BlockPool& CachingAllocator::pool_of(std::int64_t rounded_bytes, StreamId stream) {
  const PoolSize size = pool_for(rounded_bytes);
  for (const Capture& capture : captures_) {
    if (std::ranges::find(capture.streams, stream) != capture.streams.end())
      return capture_pools_.at(capture.pool)->of(size);
  }
  return size == PoolSize::small ? small_ : large_;
}

CachedBlock* CachingAllocator::find_free(const Request& request) {
  BlockPool& pool = request.pool;
  if (collects_garbage()) ++pool.searches;
  CachedBlock* best = pool.free.smallest_of_at_least(request.bytes, request.stream);
  if (!best) return nullptr;
  // A block before unmapped addresses counts as large as it could grow to, so that the growing end
  // of a segment is used last.
  const auto could_be = [](const CachedBlock& block) {
    return block.bytes + (block.after && !block.after->mapped ? block.after->bytes : 0);
  };
  while (best->expandable) {
    CachedBlock* next = pool.free.next_larger(*best);
    if (!next || could_be(*next) >= could_be(*best)) break;
    best = next;
  }
  if (!may_serve(best->bytes, request.bytes, rules_)) return nullptr;
  pool.take(*best);
  return best;
}

CachedBlock* CachingAllocator::take_new(const Request& request) {
  if (collects_garbage()) collect_garbage();
  if (CachedBlock* block = take_from_device(request)) return block;
  if (give_back_too_large_ones(request)) {
    if (CachedBlock* block = take_from_device(request)) return block;
  }
  if (!captures_.empty() || !give_back_cache()) return nullptr;
  ++statistics_.num_alloc_retries;
  return take_from_device(request);
}

CachedBlock* CachingAllocator::take_from_device(const Request& request) {
  const std::int64_t reserved = statistics_.reserved_bytes.all.current;
  if (cap_bytes_ && reserved + request.segment_bytes > *cap_bytes_) {
    refused_by_ = RefusedBy::cap;
    return nullptr;
  }
  refused_by_ = RefusedBy::device;
  return rules_.segments == SegmentKind::expandable ? grow(request) : take_segment(request);
}

CachedBlock* CachingAllocator::take_segment(const Request& request) {
  const std::optional<Address> address = memory_.take_segment(request.segment_bytes);
  if (!address) return nullptr;
  CachedBlock& block = blocks_.take();
  block.address = *address;
  block.bytes = request.segment_bytes;
  block.stream = request.stream;
  block.pool = &request.pool;
  if (request.pool.owner) ++request.pool.owner->segments;
  statistics_.segment.increase(request.pool.size, 1);
  statistics_.reserved_bytes.increase(request.pool.size, block.bytes);
  if (rules_.too_large_to_split(block.bytes)) statistics_.oversize_segments.increase(1);
  ++statistics_.num_device_alloc;
  return &block;
}

HeldBlock CachingAllocator::hand_out(CachedBlock& found, const Request& request) {
  const PoolSize size = request.pool.size;
  const bool was_split = found.is_split();
  CachedBlock* block = &found;
  if (leaves_remainder(found.bytes, request.bytes, size, rules_)) {
    block = &split(found, request.bytes);
    if (!found.expandable && was_split) {
      statistics_.inactive_split_bytes.decrease(size, block->bytes);
    } else if (!found.expandable) {
      statistics_.inactive_split_bytes.increase(size, found.bytes);
      statistics_.inactive_split.increase(size, 1);
    }
  } else if (was_split && !found.expandable) {
    statistics_.inactive_split_bytes.decrease(size, found.bytes);
    statistics_.inactive_split.decrease(size, 1);
  }
  block->held = true;
  block->requested_bytes = request.requested_bytes;
  statistics_.allocation.increase(size, 1);
  statistics_.allocated_bytes.increase(size, block->bytes);
  statistics_.active.increase(size, 1);
  statistics_.active_bytes.increase(size, block->bytes);
  statistics_.requested_bytes.increase(size, block->requested_bytes);
  if (rules_.too_large_to_split(block->bytes)) statistics_.oversize_allocations.increase(1);
  return {block->id, block->address, block->bytes};
}

// Splits off the front of the block; the rest is free.
CachedBlock& CachingAllocator::split(CachedBlock& rest, std::int64_t bytes) {
  CachedBlock& front = part_of(rest, rest.address, bytes);
  front.before = rest.before;
  if (front.before) front.before->after = &front;
  front.after = &rest;
  rest.before = &front;
  rest.address += static_cast<Address>(bytes);
  rest.bytes -= bytes;
  rest.pool->put(rest);
  return front;
}

CachedBlock& CachingAllocator::part_of(CachedBlock& whole, Address address, std::int64_t bytes) {
  CachedBlock& part = blocks_.take();
  part.address = address;
  part.bytes = bytes;
  part.stream = whole.stream;
  part.pool = whole.pool;
  part.expandable = whole.expandable;
  return part;
}

Refusal CachingAllocator::refuse(const Request& request) {
  Refusal refusal = refusal_of(statistics_, memory_, cap_bytes_);
  refusal.by = refused_by_;
  refusal.stream = request.stream;
  refusal.requested_bytes = request.requested_bytes;
  refusal.rounded_bytes = request.bytes;
  refusal.segment_bytes = request.segment_bytes;
  const auto largest_of = [&](const BlockPool& pool) {
    for (const CachedBlock* free : pool.free.all()) {
      refusal.largest_free_bytes = std::max(refusal.largest_free_bytes, free->bytes);
      if (&pool == &request.pool && free->stream == request.stream)
        refusal.largest_usable_bytes = std::max(refusal.largest_usable_bytes, free->bytes);
    }
  };
  largest_of(small_);
  largest_of(large_);
  for (const auto& [id, pool] : capture_pools_) {
    largest_of(pool->small);
    largest_of(pool->large);
  }
  return refusal;
}

}  // namespace stepgate
