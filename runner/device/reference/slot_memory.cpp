// SPDX-License-Identifier: MIT
// The contents of buffers on the reference device. The queues and the host thread decide when
// operations may access them.
#include "device/reference/slot_memory.h"

#include <algorithm>

#include "base/require.h"
#include "device/contents.h"

namespace stepgate {

SlotMemory::SlotMemory(const StepPlan& plan, std::uint64_t garbage_seed)
    : plan_(&plan), garbage_(garbage_seed), slots_(plan.buffers.size()) {
  for (std::size_t buffer = 0; buffer < plan.buffers.size(); ++buffer) {
    const Buffer& described = plan.buffers[buffer];
    if (described.purpose == Purpose::workspace) continue;
    slots_[buffer].resize(static_cast<std::size_t>(described.slots));
    for (std::int64_t slot = 0; slot < described.slots; ++slot) {
      const SharedBlock made = allocate(static_cast<int>(buffer), slot);
      if (described.allocated_by != AllocatedBy::the_plan) continue;
      fill_contents(described, slot, plan.seed, *made);
    }
  }
}

SharedBlock SlotMemory::block(int buffer, std::int64_t slot) const {
  return slot_of(buffer, slot).block;
}

SharedBlock SlotMemory::allocate(int buffer, std::int64_t slot) {
  const auto bytes = static_cast<std::size_t>(plan_->buffers.at(buffer).bytes);
  auto fresh = std::make_shared<Block>(bytes);
  fill_with_garbage(*fresh);
  slot_of(buffer, slot).block = fresh;
  return fresh;
}

void SlotMemory::fill_with_garbage(Block& block) {
  for (std::size_t i = 0; i < block.size(); i += 8) {
    const std::uint64_t bits = garbage_.bits();
    for (std::size_t byte = i; byte < std::min(i + 8, block.size()); ++byte) {
      block[byte] = static_cast<std::byte>(bits >> (8 * (byte - i)));
    }
  }
}

bool SlotMemory::is_pageable(int buffer, std::int64_t slot) const {
  return plan_->buffers.at(buffer).memory == MemoryKind::pageable && !slot_of(buffer, slot).pinned;
}

SlotMemory::Slot& SlotMemory::slot_of(int buffer, std::int64_t slot) {
  require(buffer >= 0 && static_cast<std::size_t>(buffer) < slots_.size(), "the buffer exists");
  auto& slots = slots_[buffer];
  require(!slots.empty(), "no operation touches workspace");
  return slots[static_cast<std::size_t>(slot) % slots.size()];
}

const SlotMemory::Slot& SlotMemory::slot_of(int buffer, std::int64_t slot) const {
  return const_cast<SlotMemory*>(this)->slot_of(buffer, slot);
}

}  // namespace stepgate
