// SPDX-License-Identifier: MIT
// Facts that must be true of any allocator at any moment, whatever it was asked: for property
// tests, for fuzzing, and for whoever doubts.
#pragma once

#include <span>
#include <string>

#include "plan/allocators/memory_allocator.h"

namespace stepgate {

// The first thing that is not so, or nothing: blocks tile their segments, segments do not overlap,
// no two free blocks that could be one lie side by side, and the statistics are those of the
// snapshot.
std::optional<std::string> broken_property(const MemoryAllocator&);
// For whoever has that snapshot already: taking it is most of the time.
std::optional<std::string> broken_property(std::span<const SegmentState> snapshot,
                                           const MemoryStatistics&);

}  // namespace stepgate
