// SPDX-License-Identifier: MIT
// Addresses for more memory than the device has, and pages mapped to some of them: a segment that
// grows at its end instead of a new one beside it. The allocator knows which blocks lie in it.
#pragma once

#include "allocators/device_memory.h"

namespace stepgate {

struct MappedRange {
  Address address = 0;
  std::int64_t bytes = 0;  // 0: none
};

struct ExpandableSegment {
  // Reserves addresses for 9/8 of the device's memory, so that pages unmapped in front can be
  // mapped again behind.
  ExpandableSegment(DeviceMemory&, StreamId, std::int64_t page_bytes);
  ~ExpandableSegment();
  ExpandableSegment(const ExpandableSegment&) = delete;
  ExpandableSegment& operator=(const ExpandableSegment&) = delete;

  // As many whole pages as the range needs, from its start on, which is the start of a page. May
  // reach further than the range. None when the device refuses.
  MappedRange map(MappedRange);
  // The whole pages inside the range. Waits for the stream.
  MappedRange unmap(MappedRange);

  DeviceMemory& memory;
  StreamId stream;
  std::int64_t page_bytes;
  std::int64_t bytes;
  Address address;
};

}  // namespace stepgate
