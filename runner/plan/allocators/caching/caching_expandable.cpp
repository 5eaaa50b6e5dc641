// SPDX-License-Identifier: MIT
// Expandable segments: one for each stream and pool, mapped as far as requests reached. Addresses
// without memory are blocks too, but they are never handed out.
#include <algorithm>

#include "base/require.h"
#include "plan/allocators/caching/caching_allocator.h"

namespace stepgate {
namespace {

std::int64_t pages_in(std::int64_t bytes, std::int64_t page_bytes) {
  return (bytes + page_bytes - 1) / page_bytes;
}

}  // namespace

ExpandableSegment::ExpandableSegment(DeviceMemory& device_memory, StreamId its_stream,
                                     std::int64_t its_page_bytes)
    : memory(device_memory),
      stream(its_stream),
      page_bytes(its_page_bytes),
      bytes(page_bytes * pages_in(memory.total_bytes() + memory.total_bytes() / 8, page_bytes)),
      address(memory.reserve_addresses(bytes)) {}

ExpandableSegment::~ExpandableSegment() {
  memory.release_addresses(address, bytes);
}

MappedRange ExpandableSegment::map(MappedRange range) {
  require((range.address - address) % static_cast<Address>(page_bytes) == 0,
          "a range to be mapped starts with a page");
  const std::int64_t mapped = page_bytes * pages_in(range.bytes, page_bytes);
  if (!memory.map_pages(range.address, mapped, page_bytes)) return {};
  return {range.address, mapped};
}

MappedRange ExpandableSegment::unmap(MappedRange range) {
  const auto offset = static_cast<std::int64_t>(range.address - address);
  const std::int64_t begin = page_bytes * pages_in(offset, page_bytes);
  const std::int64_t end = (offset + range.bytes) / page_bytes * page_bytes;
  if (begin >= end) return {};
  const MappedRange unmapped{address + static_cast<Address>(begin), end - begin};
  memory.unmap_pages(unmapped.address, unmapped.bytes, page_bytes, stream);
  return unmapped;
}

// Returns a block that is large enough, and maps its pages where necessary. nullptr when the device
// refuses; pages that were mapped until then stay, as free blocks.
CachedBlock* CachingAllocator::grow(const Request& request) {
  if (request.bytes > memory_.total_bytes()) return nullptr;  // no address range is that large
  CachedBlock* block = &expandable_block(request);
  if (!block->mapped && !map(*block, std::min(block->bytes, request.bytes))) return nullptr;
  while (block->bytes < request.bytes) {
    CachedBlock& behind = *block->after;
    if (!map(behind, std::min(request.bytes - block->bytes, behind.bytes))) return nullptr;
    block = &behind;  // it now includes the bytes before it
  }
  request.pool.take(*block);
  return block;
}

// Finds the lowest place in the stream's segments where adjacent free and unmapped blocks are large
// enough, or makes a new segment.
CachedBlock& CachingAllocator::expandable_block(const Request& request) {
  BlockPool& pool = request.pool;
  const auto has_room = [&](const CachedBlock* block) {
    std::int64_t bytes = 0;
    for (; bytes < request.bytes && block && block->is_free(); block = block->after)
      bytes += block->bytes;
    return bytes >= request.bytes;
  };
  for (auto unmapped = pool.unmapped.lower_bound({request.stream, 0, nullptr});
       unmapped != pool.unmapped.end() && unmapped->stream == request.stream; ++unmapped) {
    CachedBlock* block = unmapped->block;
    if (block->before && block->before->is_free()) block = block->before;
    if (has_room(block)) return *block;
  }
  expandable_segments_.push_back(
      std::make_unique<ExpandableSegment>(memory_, request.stream, page_size(pool.size)));
  ExpandableSegment& segment = *expandable_segments_.back();
  CachedBlock& block = blocks_.take();
  block.address = segment.address;
  block.bytes = segment.bytes;
  block.stream = request.stream;
  block.mapped = false;
  block.pool = &pool;
  block.expandable = &segment;
  if (pool.owner) ++pool.owner->segments;
  pool.put_unmapped(block);
  return block;
}

// Maps the first bytes of an unmapped block, in whole pages, and merges it with free neighbours.
bool CachingAllocator::map(CachedBlock& block, std::int64_t bytes) {
  const MappedRange mapped = block.expandable->map({block.address, bytes});
  if (mapped.bytes == 0) return false;
  BlockPool& pool = *block.pool;
  pool.take_unmapped(block);
  block.mapped = true;
  if (mapped.bytes < block.bytes) {
    CachedBlock& rest = part_of(block, block.address + static_cast<Address>(mapped.bytes),
                                block.bytes - mapped.bytes);
    rest.mapped = false;
    rest.before = &block;
    rest.after = block.after;
    if (rest.after) rest.after->before = &rest;
    block.after = &rest;
    block.bytes = mapped.bytes;
    pool.put_unmapped(rest);
  }
  merge(block, block.before);
  merge(block, block.after);
  pool.put(block);
  statistics_.reserved_bytes.increase(pool.size, mapped.bytes);
  ++statistics_.num_device_alloc;
  return true;
}

// Unmaps the whole pages inside a free block; the remainders before and behind stay mapped.
void CachingAllocator::unmap(CachedBlock& block) {
  const MappedRange unmapped = block.expandable->unmap({block.address, block.bytes});
  if (unmapped.bytes == 0) return;
  BlockPool& pool = *block.pool;
  pool.take(block);
  const auto in_front = static_cast<std::int64_t>(unmapped.address - block.address);
  const std::int64_t behind = block.bytes - in_front - unmapped.bytes;
  if (in_front > 0) {
    CachedBlock& front = part_of(block, block.address, in_front);
    front.before = block.before;
    front.after = &block;
    if (front.before) front.before->after = &front;
    block.before = &front;
    pool.put(front);
  }
  if (behind > 0) {
    CachedBlock& back =
        part_of(block, unmapped.address + static_cast<Address>(unmapped.bytes), behind);
    back.before = &block;
    back.after = block.after;
    if (back.after) back.after->before = &back;
    block.after = &back;
    pool.put(back);
  }
  block.address = unmapped.address;
  block.bytes = unmapped.bytes;
  block.mapped = false;
  merge(block, block.before);
  merge(block, block.after);
  pool.put_unmapped(block);
  statistics_.reserved_bytes.decrease(pool.size, unmapped.bytes);
  ++statistics_.num_device_free;
  if (!block.is_split()) drop_expandable(block);
}

// Releases the addresses of a segment without mapped pages.
void CachingAllocator::drop_expandable(CachedBlock& block) {
  require(block.bytes == block.expandable->bytes, "an unmapped block without neighbours is all");
  block.pool->take_unmapped(block);
  if (block.pool->owner) --block.pool->owner->segments;
  std::erase_if(expandable_segments_,
                [&](const auto& owned) { return owned.get() == block.expandable; });
  blocks_.give_back(block);
}

}  // namespace stepgate
