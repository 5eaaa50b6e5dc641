// SPDX-License-Identifier: MIT
// Memory that outlives the step that used it, so that the next step in its place gets the same
// addresses and the same physical pages, and waits for no allocation. kept_blocks.h chooses the
// block, cuda_buffers.h uses it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "device/cuda/handles.h"
#include "device/kept_blocks.h"

namespace stepgate {

// Registered: ordinary memory that is pinned as long as it is there.
enum class KeptKind { device, pinned, registered, pageable };
constexpr std::size_t kept_kinds = 4;

// Bytes of the blocks of a step, by KeptKind.
using KeptSizes = std::array<std::vector<std::int64_t>, kept_kinds>;

class PersistentMemory {
 public:
  // One step at a time takes the blocks that it announces here; the one before must be gone. It
  // needs `other_device_bytes` besides. Where the device's free bytes do not suffice for what is
  // missing, all its blocks here are given up first, so that none is in the way.
  void begin(KeptSizes wanted, std::int64_t other_device_bytes, std::int64_t free_device_bytes);
  void end() { in_use_ = false; }

  // The block's address in `memory`. The status is that of the allocation, if there was one; for
  // pageable memory, cudaErrorMemoryAllocation where the host has none.
  cudaError_t take(KeptKind, void*& memory, std::int64_t bytes);

  // KeptBlocks::mark_of of a block that was taken.
  const void*& mark_of(KeptKind, const void* memory);

  // Device memory that is there, and what of it the present step has asked for.
  std::int64_t device_bytes() const { return device_.bytes(); }
  std::int64_t asked_device_bytes() const { return device_.asked_bytes(); }

  // All device memory that no step is in; one that is being loaded here must have taken all of its.
  void give_up_device_memory();

 private:
  KeptBlocks<DeviceMemoryBlock> device_;
  KeptBlocks<PinnedMemory> pinned_;
  KeptBlocks<RegisteredMemory> registered_;
  KeptBlocks<HostMemoryBlock> pageable_;
  bool in_use_ = false;
};

}  // namespace stepgate
