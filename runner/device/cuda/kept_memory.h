// SPDX-License-Identifier: MIT
// Memory that outlives the step that used it, so that the next step in its place gets the same
// addresses and the same physical pages. What the step does with it is cuda_buffers.h's.
#pragma once

#include <cstdint>
#include <vector>

#include "device/cuda/handles.h"

namespace stepgate {

// Each kind is a row of blocks: the n-th block asked for after rewind() is the n-th of the last
// time wherever that is large enough, and replaces it where it is not. So steps with equal buffers
// share every address, and after each step has been there once nothing is allocated any more.
class KeptMemory {
 public:
  // One step at a time asks; the one before must be gone.
  void begin();
  void end() { in_use_ = false; }

  // The block's address in `memory`. The status is that of the allocation, if there was one.
  cudaError_t take_device(void*& memory, std::int64_t bytes);
  cudaError_t take_pinned(void*& memory, std::int64_t bytes);
  // Whole pages; null when the host has no memory.
  void* take_pageable(std::int64_t bytes);

  std::int64_t device_bytes() const;

 private:
  template <class Owner>
  struct Row {
    struct Block {
      Owner memory;
      std::int64_t bytes = 0;
    };

    std::vector<Block> blocks;
    std::size_t next = 0;

    Block& following();
    std::int64_t bytes() const;
  };

  Row<DeviceMemoryBlock> device_;
  Row<PinnedMemory> pinned_;
  Row<HostMemoryBlock> pageable_;
  bool in_use_ = false;
};

}  // namespace stepgate
