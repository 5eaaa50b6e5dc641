// SPDX-License-Identifier: MIT
// Values that stay where they are and are found by a number that knows when it is out of date. So a
// block that is freed twice is noticed at once, at the price of one comparison.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "base/require.h"
#include "plan/allocators/memory_allocator.h"

namespace stepgate {

template <class Value>
class SlotTable {
 public:
  struct Slot {
    Value value;
    BlockId id;
    bool taken = false;
  };

  // Creates a new value in a free slot.
  Value& take() {
    if (vacant_.empty()) {
      slots_.emplace_back();
      slots_.back().id.slot = static_cast<std::uint32_t>(slots_.size() - 1);
      vacant_.push_back(slots_.back().id.slot);
    }
    Slot& slot = slots_[vacant_.back()];
    vacant_.pop_back();
    slot.taken = true;
    slot.value = Value();
    slot.value.id = slot.id;
    return slot.value;
  }

  void give_back(Value& value) {
    Slot& slot = slots_[value.id.slot];
    require(slot.taken && &slot.value == &value, "a slot is given back once");
    slot.taken = false;
    ++slot.id.turn;
    vacant_.push_back(slot.id.slot);
  }

  // Invalidates all names of the value that were given out before.
  void renew(Value& value) { value.id.turn = ++slots_[value.id.slot].id.turn; }

  Value& at(BlockId id) {
    require(id.slot < slots_.size() && slots_[id.slot].taken && slots_[id.slot].id == id,
            "a block is one that the allocator made");
    return slots_[id.slot].value;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.taken) visit(slot.value);
    }
  }

 private:
  std::deque<Slot> slots_;
  std::vector<std::uint32_t> vacant_;
};

}  // namespace stepgate
