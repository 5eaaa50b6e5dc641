// SPDX-License-Identifier: MIT
// Carries a recording out against an allocator and says where the two part.
#pragma once

#include <map>
#include <set>

#include "plan/allocators/simulated_memory.h"
#include "plan/allocators/testing/recording.h"

namespace stepgate {

// The device of a recording: it hands out the very addresses that the recorded device did, so that
// blocks can be compared one by one, and refuses what that one refused. It also refuses requests
// beyond the recording.
class RecordedMemory : public SimulatedMemory {
 public:
  explicit RecordedMemory(const AllocationRecording&);

  // From now on the segments are to become those after this event.
  void begin(const RecordedEvent&);
  // The segments that there are after the event, by address.
  const std::map<Address, SegmentState>& segments() const { return segments_; }

  std::optional<Address> take_segment(std::int64_t bytes) override;
  void give_back_segment(Address, std::int64_t bytes) override;
  Address reserve_addresses(std::int64_t bytes) override;
  void release_addresses(Address, std::int64_t bytes) override;
  bool map_pages(Address, std::int64_t bytes, std::int64_t page_bytes) override;
  void unmap_pages(Address, std::int64_t bytes, std::int64_t page_bytes, StreamId) override;

 private:
  const AllocationRecording& recording_;
  std::map<Address, SegmentState> segments_;
  std::set<Address> taken_;
  std::map<Address, std::int64_t> reserved_;
};

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
