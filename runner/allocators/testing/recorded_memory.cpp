// SPDX-License-Identifier: MIT
#include "allocators/testing/recorded_memory.h"

#include <algorithm>

#include "support/require.h"

namespace stepgate {
namespace {

// Where no recorded segment can be: for expandable segments that the recording does not have.
constexpr Address beyond_all = Address{1} << 62;

}  // namespace

RecordedMemory::RecordedMemory(const AllocationRecording& recording)
    : SimulatedMemory(recording.device_bytes), recording_(recording) {}

void RecordedMemory::begin(const RecordedEvent& event) {
  if (!event.found) return;
  const RecordedState& found = recording_.found[*event.found];
  for (const Address address : found.gone) segments_.erase(address);
  for (const SegmentState& segment : found.segments) {
    segments_.insert_or_assign(segment.address, segment);
  }
}

std::optional<Address> RecordedMemory::take_segment(std::int64_t bytes) {
  if (!recording_.has_segments) return SimulatedMemory::take_segment(bytes);
  for (const auto& [address, segment] : segments_) {
    if (segment.kind == SegmentKind::fixed && segment.bytes == bytes &&
        taken_.insert(address).second)
      return address;
  }
  return std::nullopt;
}

void RecordedMemory::give_back_segment(Address address, std::int64_t bytes) {
  if (!recording_.has_segments) return SimulatedMemory::give_back_segment(address, bytes);
  require(taken_.erase(address) == 1, "only a taken segment is given back");
}

Address RecordedMemory::reserve_addresses(std::int64_t bytes) {
  if (!recording_.has_segments) return SimulatedMemory::reserve_addresses(bytes);
  const auto is_reserved = [&](Address address) {
    const auto after = reserved_.upper_bound(address);
    if (after == reserved_.begin()) return false;
    const auto& [begin, length] = *std::prev(after);
    return address < begin + static_cast<Address>(length);
  };
  Address begin = beyond_all;
  for (const auto& [address, segment] : segments_) {
    if (segment.kind != SegmentKind::expandable || is_reserved(address)) continue;
    begin = address;
    break;
  }
  if (begin == beyond_all && !reserved_.empty() && reserved_.rbegin()->first >= beyond_all)
    begin = reserved_.rbegin()->first + static_cast<Address>(reserved_.rbegin()->second);
  reserved_.emplace(begin, bytes);
  return begin;
}

void RecordedMemory::release_addresses(Address address, std::int64_t bytes) {
  if (!recording_.has_segments) return SimulatedMemory::release_addresses(address, bytes);
  require(reserved_.erase(address) == 1, "only reserved addresses are released");
}

bool RecordedMemory::map_pages(Address address, std::int64_t bytes, std::int64_t page_bytes) {
  if (!recording_.has_segments) return SimulatedMemory::map_pages(address, bytes, page_bytes);
  const auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return false;
  const SegmentState& segment = std::prev(after)->second;
  return segment.kind == SegmentKind::expandable &&
         address + static_cast<Address>(bytes) <=
             segment.address + static_cast<Address>(segment.bytes);
}

void RecordedMemory::unmap_pages(Address address, std::int64_t bytes, std::int64_t page_bytes,
                                 StreamId stream) {
  if (!recording_.has_segments)
    return SimulatedMemory::unmap_pages(address, bytes, page_bytes, stream);
  finish(stream);  // which pages are mapped is in the recording
}

}  // namespace stepgate
