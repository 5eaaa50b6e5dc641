// SPDX-License-Identifier: MIT
// Memory that outlives the step that used it, so that the next step in its slot gets the same
// addresses and physical pages without an allocation. kept_blocks.h chooses the block,
// cuda_buffers.h uses it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "device/cuda/handles.h"
#include "device/kept_blocks.h"

namespace stepgate {

// The kind of memory. registered is pageable memory that is pinned for as long as it exists.
enum class KeptKind { device, pinned, registered, pageable };
constexpr std::size_t kept_kinds = 4;

// Sizes of the blocks of a step in bytes, by KeptKind.
using KeptSizes = std::array<std::vector<std::int64_t>, kept_kinds>;

class PersistentMemory {
 public:
  // Announces the blocks that the next step takes. The previous step must be destroyed: only one
  // step uses the blocks at a time. The step also needs `other_device_bytes` of its own. If free
  // device memory is too small for the missing bytes, all device blocks kept here are freed first.
  void begin(KeptSizes wanted, std::int64_t other_device_bytes, std::int64_t free_device_bytes);
  void end() { in_use_ = false; }

  // Takes a block and sets `memory` to its address. Returns the status of the allocation, if one
  // was necessary; for pageable memory cudaErrorMemoryAllocation if the host has none.
  cudaError_t take(KeptKind, void*& memory, std::int64_t bytes);

  // Returns KeptBlocks::mark_of for a block that was taken.
  const void*& mark_of(KeptKind, const void* memory);

  // Bytes of allocated device memory, and below the bytes of it that the present step requested.
  std::int64_t device_bytes() const { return device_.bytes(); }
  std::int64_t asked_device_bytes() const { return device_.asked_bytes(); }

  // Frees all device memory that no step uses. A step that is being loaded must already have taken
  // all its blocks.
  void give_up_device_memory();

 private:
  KeptBlocks<DeviceMemoryBlock> device_;
  KeptBlocks<PinnedMemory> pinned_;
  KeptBlocks<RegisteredMemory> registered_;
  KeptBlocks<HostMemoryBlock> pageable_;
  bool in_use_ = false;
};

}  // namespace stepgate
