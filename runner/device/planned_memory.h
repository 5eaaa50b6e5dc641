// SPDX-License-Identifier: MIT
// Memory that a step takes according to its plan. A device compares its own accounting with it, and
// a device without memory reports it. Steps that need too much are refused before anything is
// allocated.
#pragma once

#include "device/trace.h"
#include "plan/plan_facts.h"

namespace stepgate {

// Device memory by purpose and in total, with its peak in program order, and pinned host memory.
// Reserved memory comes from the plan's allocator simulation; without one, it equals the largest
// memory held, as the allocator's overhead is unknown.
MemoryUse planned_memory(const StepPlan&);
// As above, for a plan whose held memory was computed before.
MemoryUse planned_memory(const StepPlan&, const HeldMemory&);

// Device memory that a step could get, and all memory of the device.
struct MemoryThere {
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
};

// Throws DeviceMemoryFull when the step cannot fit; the message has the needed and the free memory.
void require_memory(const StepPlan&, const MemoryThere&);

}  // namespace stepgate
