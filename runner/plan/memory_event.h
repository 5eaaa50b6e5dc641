// SPDX-License-Identifier: MIT
// The events of an allocator, one after the other, for people who look at them in a memory viewer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/record/fields.h"
#include "plan/allocators/memory_allocator.h"

namespace stepgate {

enum class MemoryAction { take_segment, give_back_segment, allocate, release, refuse };

struct MemoryEvent {
  MemoryAction action = MemoryAction::allocate;
  Address address = 0;     // 0 of a refusal
  std::int64_t bytes = 0;  // asked for, or of the segment
  int stream = 0;
  int buffer = -1;              // index into StepPlan::buffers; -1: a segment's
  int operation = -1;           // of StepPlan::operations; -1: before the first step
  std::int64_t step = 0;        // that the operation acted for
  std::int64_t free_bytes = 0;  // of a refusal: what the cap or the device would still have given
};
template <>
inline constexpr auto fields_of<MemoryEvent> =
    fields<&MemoryEvent::action, &MemoryEvent::address, &MemoryEvent::bytes, &MemoryEvent::stream,
           &MemoryEvent::buffer, &MemoryEvent::operation, &MemoryEvent::step,
           &MemoryEvent::free_bytes>;

struct MemoryHistory {
  std::vector<MemoryEvent> events;
  std::vector<SegmentState> segments;  // at the end
};

}  // namespace stepgate
