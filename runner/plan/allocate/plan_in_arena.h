// SPDX-License-Identifier: MIT
// The same step with what lives for a part of it in one piece of device memory, at places that are
// planned from the lifetimes.
#pragma once

#include "plan/step_plan.h"

namespace stepgate {

// Moves activations and staging memory that operations name into one buffer, "arena"; what they
// were keeps its index and has no bytes. Gradients stay where a reader finds them after the step,
// and so does what an allocator owns. Where batches take turns, each turn has places of its own.
StepPlan in_arena(StepPlan);

}  // namespace stepgate
