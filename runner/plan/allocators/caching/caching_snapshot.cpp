// SPDX-License-Identifier: MIT
// The caching allocator's segments and blocks as values.
#include <algorithm>

#include "plan/allocators/caching/caching_allocator.h"

namespace stepgate {
namespace {

BlockState state_of(const CachedBlock& block) {
  const bool pending = block.open_points > 0 || !block.used_by.empty();
  return {.address = block.address,
          .bytes = block.bytes,
          .requested_bytes = block.requested_bytes,
          .use = block.held ? BlockUse::live
                 : pending  ? BlockUse::pending
                            : BlockUse::free};
}

SegmentState segment_from(const CachedBlock& first) {
  SegmentState segment{
      .address = first.address,
      .stream = first.stream,
      .pool = first.pool->size,
      .kind = first.expandable ? SegmentKind::expandable : SegmentKind::fixed,
      .capture_pool = first.pool->owner ? std::optional(first.pool->owner->id) : std::nullopt,
      .blocks = {}};
  for (const CachedBlock* block = &first; block && block->mapped; block = block->after) {
    segment.blocks.push_back(state_of(*block));
    segment.bytes += block->bytes;
  }
  return segment;
}

}  // namespace

std::vector<SegmentState> CachingAllocator::snapshot() const {
  std::vector<SegmentState> segments;
  blocks_.for_each([&](const CachedBlock& block) {
    if (block.mapped && !(block.before && block.before->mapped))
      segments.push_back(segment_from(block));
  });
  std::ranges::sort(segments, {}, &SegmentState::address);
  return segments;
}

}  // namespace stepgate
