// SPDX-License-Identifier: MIT
// Carries a recording out against an allocator and says where the two part.
#pragma once

#include "allocators/testing/recorded_memory.h"

namespace stepgate {

// The first thing that is not as it was recorded.
struct ReplayDifference {
  std::size_t event = 0;  // counted from 1
  int line = 0;           // of the recording
  std::string what;       // a statistic, a segment, or whether the request was refused
  std::string expected;
  std::string got;
};

struct ReplayResult {
  std::size_t events = 0;  // carried out
  std::optional<ReplayDifference> difference;
};

// The allocator asks this memory. A recording without states is carried out and compared with
// nothing but its outcomes.
ReplayResult replay(const AllocationRecording&, RecordedMemory&, MemoryAllocator&);

// "x.jsonl:7:1: event 6: reserved_bytes.all.current is 2097152, but was recorded as 0"
std::string to_string(const ReplayDifference&, const AllocationRecording&);

}  // namespace stepgate
