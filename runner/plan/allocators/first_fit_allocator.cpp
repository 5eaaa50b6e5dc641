// SPDX-License-Identifier: MIT
#include "plan/allocators/first_fit_allocator.h"

#include <algorithm>

#include "base/require.h"

namespace stepgate {
namespace {

constexpr std::int64_t alignment_bytes = 512;
constexpr std::int64_t largest_small_block_bytes = std::int64_t{1} << 20;

}  // namespace

FirstFitAllocator::FirstFitAllocator(DeviceMemory& memory, std::optional<std::int64_t> cap_bytes)
    : memory_(memory), cap_bytes_(cap_bytes) {}

FirstFitAllocator::~FirstFitAllocator() {
  for (const WholeBlock* block : list_) {
    for (const StreamPoint point : block->points) memory_.wait_for(point);
    memory_.give_back_segment(block->address, block->bytes);
  }
}

BlockOrRefusal FirstFitAllocator::allocate(std::int64_t bytes, StreamId stream) {
  require(bytes > 0, "a block has bytes");
  if (bytes > largest_request_bytes) return refuse(bytes, bytes, stream, RefusedBy::size);
  free_passed();
  const std::int64_t rounded = (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  WholeBlock* block = first_fit(rounded, stream);
  if (!block) block = take_from_device(rounded, stream);
  if (!block) {
    ++statistics_.num_ooms;
    return refuse(bytes, rounded, stream, refused_by_);
  }
  block->use = BlockUse::live;
  block->requested_bytes = bytes;
  statistics_.allocation.increase(block->size, 1);
  statistics_.allocated_bytes.increase(block->size, block->bytes);
  statistics_.active.increase(block->size, 1);
  statistics_.active_bytes.increase(block->size, block->bytes);
  statistics_.requested_bytes.increase(block->size, bytes);
  return HeldBlock{block->id, block->address, block->bytes};
}

FirstFitAllocator::WholeBlock* FirstFitAllocator::first_fit(std::int64_t bytes, StreamId stream) {
  const auto found = std::ranges::find_if(list_, [&](const WholeBlock* block) {
    return block->use == BlockUse::free && block->stream == stream && block->bytes >= bytes;
  });
  return found == list_.end() ? nullptr : *found;
}

FirstFitAllocator::WholeBlock* FirstFitAllocator::take_from_device(std::int64_t bytes,
                                                                   StreamId stream) {
  refused_by_ = RefusedBy::cap;
  if (cap_bytes_ && statistics_.reserved_bytes.all.current + bytes > *cap_bytes_) return nullptr;
  refused_by_ = RefusedBy::device;
  const std::optional<Address> address = memory_.take_segment(bytes);
  if (!address) return nullptr;
  WholeBlock& block = blocks_.take();
  block.address = *address;
  block.bytes = bytes;
  block.stream = stream;
  block.size = bytes <= largest_small_block_bytes ? PoolSize::small : PoolSize::large;
  list_.push_back(&block);
  statistics_.segment.increase(block.size, 1);
  statistics_.reserved_bytes.increase(block.size, bytes);
  ++statistics_.num_device_alloc;
  return &block;
}

void FirstFitAllocator::free(BlockId id) {
  WholeBlock& block = blocks_.at(id);
  require(block.use == BlockUse::live, "a block is freed once");
  blocks_.renew(block);
  statistics_.allocation.decrease(block.size, 1);
  statistics_.allocated_bytes.decrease(block.size, block.bytes);
  for (const StreamId stream : block.used_by) block.points.push_back(memory_.record_point(stream));
  block.used_by.clear();
  block.use = BlockUse::pending;
  if (block.points.empty()) make_free(block);
}

void FirstFitAllocator::record_stream(BlockId id, StreamId stream) {
  WholeBlock& block = blocks_.at(id);
  require(block.use == BlockUse::live, "only a block that is held is used");
  if (stream != block.stream && std::ranges::find(block.used_by, stream) == block.used_by.end())
    block.used_by.push_back(stream);
}

void FirstFitAllocator::make_free(WholeBlock& block) {
  block.use = BlockUse::free;
  statistics_.active.decrease(block.size, 1);
  statistics_.active_bytes.decrease(block.size, block.bytes);
  statistics_.requested_bytes.decrease(block.size, block.requested_bytes);
  block.requested_bytes = 0;
}

void FirstFitAllocator::free_passed() {
  if (statistics_.active.all.current == statistics_.allocation.all.current) return;
  for (WholeBlock* block : list_) {
    if (block->use != BlockUse::pending) continue;
    std::erase_if(block->points, [&](StreamPoint point) { return memory_.has_passed(point); });
    if (block->points.empty()) make_free(*block);
  }
}

void FirstFitAllocator::begin_capture(int, std::vector<StreamId>) {
  require(false, "first fit keeps no memory apart for a graph");
}

void FirstFitAllocator::end_capture(int) {
  require(false, "no capture has begun");
}

void FirstFitAllocator::empty_cache() {
  ++statistics_.num_sync_all_streams;
  memory_.wait_for_all();
  free_passed();
  std::erase_if(list_, [&](WholeBlock* block) {
    if (block->use != BlockUse::free) return false;
    memory_.give_back_segment(block->address, block->bytes);
    statistics_.segment.decrease(block->size, 1);
    statistics_.reserved_bytes.decrease(block->size, block->bytes);
    ++statistics_.num_device_free;
    blocks_.give_back(*block);
    return true;
  });
}

Refusal FirstFitAllocator::refuse(std::int64_t requested, std::int64_t rounded, StreamId stream,
                                  RefusedBy by) {
  Refusal refusal = refusal_of(statistics_, memory_, cap_bytes_);
  refusal.by = by;
  refusal.stream = stream;
  refusal.requested_bytes = requested;
  refusal.rounded_bytes = rounded;
  refusal.segment_bytes = rounded;
  for (const WholeBlock* block : list_) {
    if (block->use != BlockUse::free) continue;
    refusal.largest_free_bytes = std::max(refusal.largest_free_bytes, block->bytes);
    if (block->stream == stream)
      refusal.largest_usable_bytes = std::max(refusal.largest_usable_bytes, block->bytes);
  }
  return refusal;
}

std::vector<SegmentState> FirstFitAllocator::snapshot() const {
  std::vector<SegmentState> segments;
  for (const WholeBlock* block : list_) {
    segments.push_back(
        {.address = block->address,
         .bytes = block->bytes,
         .stream = block->stream,
         .pool = block->size,
         .kind = SegmentKind::fixed,
         .capture_pool = {},
         .blocks = {{block->address, block->bytes, block->requested_bytes, block->use}}});
  }
  std::ranges::sort(segments, {}, &SegmentState::address);
  return segments;
}

}  // namespace stepgate
