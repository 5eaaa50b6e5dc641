// SPDX-License-Identifier: MIT
// Snapshots of PyTorch's allocator (torch.cuda.memory._dump_snapshot): its history of requests, and
// what other allocators would have needed for them. A snapshot is a pickle, which may hold code:
// only its data are read, and anything else is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plan/allocators/device_memory.h"

namespace stepgate {

struct SnapshotRequest {
  bool is_free = false;
  Address address = 0;
  std::int64_t bytes = 0;
  StreamId stream = 0;
};

struct MemorySnapshot {
  std::string file;
  std::vector<SnapshotRequest> requests;  // of the device with most of them, in order; first,
                                          // blocks that were held before the history began
  std::int64_t held_before = 0;           // number of those blocks
  std::int64_t reserved_bytes = 0;        // in its segments, at the end
  std::int64_t refusals = 0;              // the program ran out of memory
  std::optional<std::int64_t> device_free_bytes;  // at the first refusal
};

bool is_memory_snapshot(const std::filesystem::path&);
// Throws RequestError placed at the file where it is damaged, holds more than data, has no history,
// or is beyond a limit.
MemorySnapshot read_memory_snapshot(const std::filesystem::path&);

// An allocator needs this for the requests of a snapshot.
struct AllocatorNeed {
  std::string name;
  std::int64_t live_bytes = 0;      // most at one time, as requested and rounded
  std::int64_t reserved_bytes = 0;  // most taken from the device, on one without end
  std::optional<bool> fits;         // into the cap; absent where there is none
};

// PyTorch's allocator, the same with expandable segments, and a first-fit pool.
std::vector<AllocatorNeed> needs_of(const MemorySnapshot&, std::optional<std::int64_t> cap_bytes);

inline constexpr std::size_t most_snapshot_values = 20'000'000;

}  // namespace stepgate
