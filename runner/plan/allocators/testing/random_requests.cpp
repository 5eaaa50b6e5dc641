// SPDX-License-Identifier: MIT
#include "plan/allocators/testing/random_requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/allocators/testing/check_allocator.h"

namespace stepgate {
namespace {

constexpr StreamId streams = 3;
constexpr int largest_exponent = 28;  // sizes below 512 MiB

}  // namespace

std::uint8_t RequestBytes::next() {
  if (bytes_.empty()) return 0;
  const std::uint8_t byte = bytes_.front();
  bytes_ = bytes_.subspan(1);
  return byte;
}

std::int64_t RequestBytes::size() {
  const std::int64_t power = std::int64_t{1} << (next() % (largest_exponent + 1));
  return power + power * next() / 256;
}

void RandomRequests::step(RequestBytes& bytes, CachingAllocator* captures) {
  const int action = bytes.next() % 32;
  if (action < 14) {
    ask(bytes);
  } else if (action < 25) {
    if (!held_.empty()) let_go(bytes.next() % held_.size());
  } else if (action < 28) {
    if (!held_.empty()) {
      const Held& held = held_[bytes.next() % held_.size()];
      allocator_.record_stream(held.block.id, bytes.next() % streams);
    }
  } else if (action == 28) {
    memory_.finish(bytes.next() % streams);
  } else if (action == 29) {
    if (capture_ != CaptureState::underway) allocator_.empty_cache();
  } else if (action == 30) {
    cap_ = std::nullopt;
    if (bytes.next() % 4 != 0) cap_ = bytes.size() * 4;
    allocator_.set_cap(cap_);
  } else if (captures) {
    capture(*captures);
  }
}

void RandomRequests::ask(RequestBytes& bytes) {
  const std::int64_t size = bytes.size();
  const BlockOrRefusal answer = allocator_.allocate(size, bytes.next() % streams);
  const auto* block = std::get_if<HeldBlock>(&answer);
  addresses_.push_back(block ? block->address : 0);
  if (block) held_.push_back({*block, size});
}

void RandomRequests::let_go(std::size_t which) {
  allocator_.free(held_[which].block.id);
  held_[which] = held_.back();
  held_.pop_back();
}

void RandomRequests::capture(CachingAllocator& allocator) {
  switch (capture_) {
    case CaptureState::none:
      allocator.begin_capture(++pool_, {0});
      capture_ = CaptureState::underway;
      break;
    case CaptureState::underway:
      allocator.end_capture(pool_);
      capture_ = CaptureState::over;
      break;
    case CaptureState::over:
      allocator.release_capture(pool_);
      capture_ = CaptureState::none;
      break;
  }
}

void RandomRequests::let_everything_go(CachingAllocator* captures) {
  while (captures && capture_ != CaptureState::none) capture(*captures);
  while (!held_.empty()) let_go(held_.size() - 1);
  allocator_.empty_cache();
}

std::optional<std::string> RandomRequests::broken() const {
  const std::vector<SegmentState> snapshot = allocator_.snapshot();
  if (auto broken = broken_property(snapshot, allocator_.statistics())) return broken;
  std::vector<const Held*> held;
  held.reserve(held_.size());
  for (const Held& one : held_) held.push_back(&one);
  const auto address_of = [](const Held* one) { return one->block.address; };
  std::ranges::sort(held, {}, address_of);
  Address end = 0;
  for (const Held* one : held) {
    if (one->block.address < end)
      return fmt::format("held block {:#x} overlaps another", one->block.address);
    if (one->block.bytes < one->requested)
      return fmt::format("held block {:#x} is smaller than it was asked to be", one->block.address);
    end = one->block.address + static_cast<Address>(one->block.bytes);
  }
  std::size_t live = 0;
  std::int64_t reserved = 0;
  for (const SegmentState& segment : snapshot) {
    reserved += segment.bytes;
    for (const BlockState& block : segment.blocks) {
      if (block.use != BlockUse::live) continue;
      // `held` and the snapshot's blocks are both ordered by address.
      const bool is_held = live < held.size() && held[live]->block.address == block.address &&
                           held[live]->block.bytes == block.bytes;
      if (!is_held) return fmt::format("block {:#x} is live, but nobody holds it", block.address);
      ++live;
    }
  }
  if (live != held_.size()) return "a held block is not live";
  if (reserved != memory_.total_bytes() - memory_.free_bytes())
    return fmt::format("{} bytes are reserved, but {} were taken from the device", reserved,
                       memory_.total_bytes() - memory_.free_bytes());
  return std::nullopt;
}

}  // namespace stepgate
