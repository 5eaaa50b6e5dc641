// SPDX-License-Identifier: MIT
// The device of a recording: it hands out the very addresses that the recorded device did, so that
// blocks can be compared one by one, and refuses what that one refused. What it is asked for beyond
// the recording it refuses too.
#pragma once

#include <map>
#include <set>

#include "allocators/simulated_memory.h"
#include "allocators/testing/recording.h"

namespace stepgate {

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

}  // namespace stepgate
