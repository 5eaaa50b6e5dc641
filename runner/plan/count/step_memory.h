// SPDX-License-Identifier: MIT
// The memory that a step needs and takes by its plan, added up over the operations, for people and
// for metrics. device/trace.h has what a device really takes.
#pragma once

#include <cstdint>

#include "plan/plan_facts.h"
#include "plan/step_plan.h"

namespace stepgate {

// Device memory that the plan itself keeps from step to step, every buffer its own.
std::int64_t kept_bytes(const StepPlan&);

// The memory that a device holds for the unchanged plan.
HeldMemory held_memory(const StepPlan&);
// The most device memory that is live at once: by the step's allocator where there is one.
std::int64_t peak_live_bytes(const StepPlan&, const HeldMemory&);

// A plan without operations has one moment, at which all that it keeps is live.
StepMemory step_memory_of(const StepPlan&);

}  // namespace stepgate
