// SPDX-License-Identifier: MIT
#include "plan/allocators/simulated_memory.h"

#include <algorithm>

#include "base/require.h"

namespace stepgate {
namespace {

// Segments are aligned to pages of 2 MiB, as with cudaMalloc and the driver's mappings.
constexpr std::int64_t page_alignment = std::int64_t{2} << 20;
constexpr Address first_address = Address{1} << 40;

std::int64_t in_pages(std::int64_t bytes) {
  return (bytes + page_alignment - 1) / page_alignment * page_alignment;
}

}  // namespace

SimulatedMemory::SimulatedMemory(std::int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {
  require(capacity_bytes > 0, "a device has memory");
}

Address SimulatedMemory::place(std::int64_t bytes) {
  Address candidate = first_address;
  for (const auto& [address, length] : occupied_) {
    if (address - candidate >= static_cast<Address>(bytes)) break;
    candidate = address + static_cast<Address>(in_pages(length));
  }
  occupied_.emplace(candidate, bytes);
  return candidate;
}

std::optional<Address> SimulatedMemory::take_segment(std::int64_t bytes) {
  require(bytes > 0, "a segment has bytes");
  if (bytes > free_bytes()) return std::nullopt;
  used_bytes_ += bytes;
  return place(bytes);
}

void SimulatedMemory::give_back_segment(Address address, std::int64_t bytes) {
  const auto found = occupied_.find(address);
  require(found != occupied_.end() && found->second == bytes, "only a taken segment is given back");
  occupied_.erase(found);
  used_bytes_ -= bytes;
}

Address SimulatedMemory::reserve_addresses(std::int64_t bytes) {
  return place(bytes);
}

void SimulatedMemory::release_addresses(Address address, std::int64_t bytes) {
  const auto found = occupied_.find(address);
  require(found != occupied_.end() && found->second == bytes,
          "only reserved addresses are released");
  const auto page = mapped_pages_.lower_bound(address);
  require(page == mapped_pages_.end() || *page >= address + static_cast<Address>(bytes),
          "released addresses have no memory");
  occupied_.erase(found);
}

bool SimulatedMemory::map_pages(Address address, std::int64_t bytes, std::int64_t page_bytes) {
  require(bytes > 0 && bytes % page_bytes == 0, "whole pages are mapped");
  if (bytes > free_bytes()) return false;
  for (std::int64_t offset = 0; offset < bytes; offset += page_bytes) {
    require(mapped_pages_.insert(address + static_cast<Address>(offset)).second,
            "a page is mapped once");
  }
  used_bytes_ += bytes;
  return true;
}

void SimulatedMemory::unmap_pages(Address address, std::int64_t bytes, std::int64_t page_bytes,
                                  StreamId stream) {
  require(bytes > 0 && bytes % page_bytes == 0, "whole pages are unmapped");
  ++waits_;
  finish(stream);
  for (std::int64_t offset = 0; offset < bytes; offset += page_bytes) {
    require(mapped_pages_.erase(address + static_cast<Address>(offset)) == 1,
            "only a mapped page is unmapped");
  }
  used_bytes_ -= bytes;
}

StreamPoint SimulatedMemory::record_point(StreamId stream) {
  points_.emplace(next_point_, RecordedPoint{stream, ++recorded_[stream]});
  return StreamPoint{next_point_++};
}

bool SimulatedMemory::has_passed(StreamPoint point) {
  const auto found = points_.find(static_cast<std::uint64_t>(point));
  require(found != points_.end(), "a point is asked for until it has passed");
  if (finished_[found->second.stream] < found->second.number) return false;
  points_.erase(found);
  return true;
}

void SimulatedMemory::wait_for(StreamPoint point) {
  const auto found = points_.find(static_cast<std::uint64_t>(point));
  require(found != points_.end(), "a point is waited for once");
  finish_up_to(found->second.stream, found->second.number);
  points_.erase(found);
  ++waits_;
}

void SimulatedMemory::wait_for_all() {
  ++waits_;
  for (const auto& [stream, number] : recorded_) finish_up_to(stream, number);
}

void SimulatedMemory::finish(StreamId stream) {
  finish_up_to(stream, recorded_[stream]);
}

void SimulatedMemory::finish_up_to(StreamId stream, std::uint64_t number) {
  finished_[stream] = std::max(finished_[stream], number);
}

}  // namespace stepgate
