// SPDX-License-Identifier: MIT
// The memory that a step needs and takes according to its plan, summed over the operations, for
// reports and metrics. device/trace.h has the memory that a device really takes.
#pragma once

#include <cstdint>

#include "plan/plan_facts.h"
#include "plan/step_plan.h"

namespace stepgate {

// Device memory that the plan itself keeps from step to step; each buffer counts separately.
std::int64_t kept_bytes(const StepPlan&);

// The memory that a device holds for the unchanged plan.
HeldMemory held_memory(const StepPlan&);
// The largest device memory that is live at one time; from the simulation of the step's allocator
// if there is one.
std::int64_t peak_live_bytes(const StepPlan&, const HeldMemory&);

// Memory of the step at each operation. For a plan without operations, one entry with all memory
// that the plan keeps.
StepMemory step_memory_of(const StepPlan&);

}  // namespace stepgate
