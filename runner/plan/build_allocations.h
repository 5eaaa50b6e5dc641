// SPDX-License-Identifier: MIT
// Turns buffers of a finished step into ones that come and go, as [alloc] asks.
#pragma once

#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Activations are allocated and released once a step, or around their first and last use. Weights,
// gradients, state and batches stay.
void build_allocations(StepPlan&, const AllocKnobs&);

}  // namespace stepgate
