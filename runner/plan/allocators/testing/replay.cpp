// SPDX-License-Identifier: MIT
#include "plan/allocators/testing/replay.h"

#include <fmt/format.h>

#include <iterator>

#include "base/require.h"

namespace stepgate {
namespace {

// No recorded segment is here: addresses of expandable segments that the recording lacks.
constexpr Address beyond_all = Address{1} << 62;

std::string text_of(const SegmentState& segment) {
  constexpr std::string_view uses[] = {"live", "pending", "free"};
  std::string text =
      fmt::format("{} bytes of {} {}memory for stream {}:", segment.bytes,
                  segment.pool == PoolSize::small ? "small" : "large",
                  segment.kind == SegmentKind::expandable ? "expandable " : "", segment.stream);
  for (const BlockState& block : segment.blocks) {
    text += fmt::format(" {} {}", block.bytes, uses[static_cast<int>(block.use)]);
    if (block.use != BlockUse::free) text += fmt::format(" for {}", block.requested_bytes);
  }
  return text;
}

class Replay {
 public:
  Replay(const AllocationRecording& recording, RecordedMemory& memory, MemoryAllocator& allocator)
      : recording_(recording),
        memory_(memory),
        allocator_(allocator),
        expected_(statistic_count()),
        ids_(recording.blocks) {}

  ReplayResult run() {
    ReplayResult result;
    for (const RecordedEvent& event : recording_.events) {
      ++result.events;
      memory_.begin(event);
      result.difference = carry_out(event);
      if (!result.difference && event.found) result.difference = compare(*event.found);
      if (!result.difference) continue;
      result.difference->event = result.events;
      result.difference->line = event.line;
      break;
    }
    return result;
  }

 private:
  using Difference = std::optional<ReplayDifference>;

  static Difference differs(std::string what, std::string expected, std::string got) {
    return ReplayDifference{
        .what = std::move(what), .expected = std::move(expected), .got = std::move(got)};
  }

  Difference carry_out(const RecordedEvent& event) {
    switch (event.action) {
      case RecordedAction::allocate:
        return ask(event);
      case RecordedAction::free:
        allocator_.free(ids_[event.block]);
        break;
      case RecordedAction::record_stream:
        allocator_.record_stream(ids_[event.block], event.stream);
        break;
      case RecordedAction::finish:
        memory_.finish(event.stream);
        break;
      case RecordedAction::empty_cache:
        allocator_.empty_cache();
        break;
      case RecordedAction::cap:
        allocator_.set_cap(event.cap_bytes);
        break;
    }
    return std::nullopt;
  }

  Difference ask(const RecordedEvent& event) {
    const BlockOrRefusal answer = allocator_.allocate(event.bytes, event.stream);
    const auto* block = std::get_if<HeldBlock>(&answer);
    const bool refused = event.outcome == RecordedOutcome::refused;
    if (block && !refused) {
      ids_[event.block] = block->id;
      return std::nullopt;
    }
    if (!block && refused) return std::nullopt;
    return differs(fmt::format("a request for {} bytes", event.bytes),
                   refused ? "refused" : "served", refused ? "served" : "refused");
  }

  Difference compare(std::size_t found) {
    for (const auto& [statistic, value] : recording_.found[found].statistics)
      expected_[statistic] = value;
    for (const std::size_t statistic : recording_.statistics) {
      const std::int64_t got = value_of_statistic(allocator_.statistics(), statistic);
      if (got != expected_[statistic])
        return differs(name_of_statistic(statistic), std::to_string(expected_[statistic]),
                       std::to_string(got));
    }
    return recording_.has_segments ? compare_segments() : std::nullopt;
  }

  Difference compare_segments() const {
    auto expected = memory_.segments().begin();
    const auto end = memory_.segments().end();
    const std::string none = "none";
    for (const SegmentState& got : allocator_.snapshot()) {
      const std::string what = fmt::format("segment {:#x}", got.address);
      if (expected == end || expected->first > got.address)
        return differs(what, none, text_of(got));
      if (expected->first < got.address) break;
      if (expected->second != got) return differs(what, text_of(expected->second), text_of(got));
      ++expected;
    }
    if (expected == end) return std::nullopt;
    return differs(fmt::format("segment {:#x}", expected->first), text_of(expected->second), none);
  }

  const AllocationRecording& recording_;
  RecordedMemory& memory_;
  MemoryAllocator& allocator_;
  std::vector<std::int64_t> expected_;  // every statistic
  std::vector<BlockId> ids_;            // the replayed ids of recorded blocks
};

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

ReplayResult replay(const AllocationRecording& recording, RecordedMemory& memory,
                    MemoryAllocator& allocator) {
  return Replay(recording, memory, allocator).run();
}

std::string to_string(const ReplayDifference& difference, const AllocationRecording& recording) {
  return fmt::format("{}:{}:1: event {}: {} is {}, but was recorded as {}", recording.file,
                     difference.line, difference.event, difference.what, difference.got,
                     difference.expected);
}

}  // namespace stepgate
