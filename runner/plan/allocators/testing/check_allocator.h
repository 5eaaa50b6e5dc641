// SPDX-License-Identifier: MIT
// Invariants of every allocator at any moment, after any requests. Used by property tests and
// fuzzing.
#pragma once

#include <span>
#include <string>

#include "plan/allocators/memory_allocator.h"

namespace stepgate {

// Returns the first broken invariant, or nothing. Blocks tile their segments, segments do not
// overlap, mergeable free blocks are never adjacent, and the statistics match the snapshot.
std::optional<std::string> broken_property(const MemoryAllocator&);
// For callers that already have the snapshot, which takes most of the time.
std::optional<std::string> broken_property(std::span<const SegmentState> snapshot,
                                           const MemoryStatistics&);

}  // namespace stepgate
