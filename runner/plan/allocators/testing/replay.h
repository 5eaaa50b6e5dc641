// SPDX-License-Identifier: MIT
// Carries a recording out against an allocator and says where the two part.
#pragma once

#include <map>
#include <set>

#include "plan/allocators/simulated_memory.h"
#include "plan/allocators/testing/recording.h"

namespace stepgate {

// The device of a recording. It returns the recorded addresses, so that blocks can be compared one
// by one, and refuses what was refused then. It also refuses requests beyond the recording.
class RecordedMemory : public SimulatedMemory {
 public:
  explicit RecordedMemory(const AllocationRecording&);

  // Prepares for the segments after this event.
  void begin(const RecordedEvent&);
  // The segments after the event, by address.
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

// The first difference between replay and recording.
struct ReplayDifference {
  std::size_t event = 0;  // counted from 1
  int line = 0;           // line of the recording
  std::string what;       // a statistic, a segment, or whether the request was refused
  std::string expected;
  std::string got;
};

struct ReplayResult {
  std::size_t events = 0;  // number replayed
  std::optional<ReplayDifference> difference;
};

// The allocator must use this memory. If the recording contains no states, only the outcomes of
// requests are compared.
ReplayResult replay(const AllocationRecording&, RecordedMemory&, MemoryAllocator&);

// Writes "x.jsonl:7:1: event 6: reserved_bytes.all.current is 2097152, but was recorded as 0".
std::string to_string(const ReplayDifference&, const AllocationRecording&);

}  // namespace stepgate
