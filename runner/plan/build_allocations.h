// SPDX-License-Identifier: MIT
// Turns buffers of a finished step into ones that come and go, as [alloc] asks.
#pragma once

#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Activations are allocated and released once a step, or around their first and last use. Weights,
// gradients, state and batches stay. Also what a step leaks, its short-lived tensors, and when the
// cache is emptied.
void build_allocations(StepPlan&, const AllocKnobs&);

// What the cap allows, in bytes; nothing where there is none.
std::optional<std::int64_t> cap_bytes(const StepPlan&, const MemoryCap&);

// Which allocator serves the step, and how much it may take.
std::optional<AllocatorPlan> allocator_plan(const StepPlan&, const AllocKnobs&);

}  // namespace stepgate
