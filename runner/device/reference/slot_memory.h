// SPDX-License-Identifier: MIT
// The memory of the reference device: one block of bytes for each slot of each buffer. It is filled
// with garbage where CUDA guarantees no content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "plan/step_plan.h"

namespace stepgate {

using Block = std::vector<std::byte>;
using SharedBlock = std::shared_ptr<Block>;

class SlotMemory {
 public:
  // Buffers of the plan get their initial contents; buffers that are allocated within a step have
  // no block yet. Workspace gets no memory: host references need none, and it would be larger than
  // a small model.
  SlotMemory(const StepPlan&, std::uint64_t garbage_seed);

  // The block that the slot refers to now. Operations keep the block that they were issued with, as
  // a CUDA call keeps its pointer, so released memory stays readable garbage.
  SharedBlock block(int buffer, std::int64_t slot) const;

  // Makes a new block of garbage and lets the slot refer to it.
  SharedBlock allocate(int buffer, std::int64_t slot);

  // Overwrites a block with random bytes.
  void fill_with_garbage(Block&);

  // These simulate cudaHostRegister and cudaHostUnregister, as far as they decide whether a copy
  // blocks the host.
  void register_host(int buffer, std::int64_t slot) { slot_of(buffer, slot).pinned = true; }
  void unregister_host(int buffer, std::int64_t slot) { slot_of(buffer, slot).pinned = false; }
  bool is_pageable(int buffer, std::int64_t slot) const;

 private:
  struct Slot {
    SharedBlock block;
    bool pinned = false;
  };

  Slot& slot_of(int buffer, std::int64_t slot);
  const Slot& slot_of(int buffer, std::int64_t slot) const;

  const StepPlan* plan_;
  Random garbage_;
  std::vector<std::vector<Slot>> slots_;  // [buffer][slot]
};

}  // namespace stepgate
