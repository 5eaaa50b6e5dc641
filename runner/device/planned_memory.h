// SPDX-License-Identifier: MIT
// Memory that a step takes as its plan says. A device compares its own books with it, and one
// without memory reports it. Steps that need too much are refused by it before anything is
// allocated.
#pragma once

#include "device/trace.h"
#include "plan/plan_facts.h"

namespace stepgate {

// Device memory by purpose and together, in program order; host memory that is pinned. What an
// allocator holds beyond what is in use is not known: then reserved is what is allocated.
MemoryUse planned_memory(const StepPlan&);
// The same where what it holds is known already.
MemoryUse planned_memory(const StepPlan&, const HeldMemory&);

// Device memory that a step could have, and all that the device has.
struct MemoryThere {
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
};

// Throws DeviceMemoryFull, with what is needed and what is there, when the step cannot fit.
void require_memory(const StepPlan&, const MemoryThere&);

}  // namespace stepgate
