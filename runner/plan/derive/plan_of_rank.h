// SPDX-License-Identifier: MIT
// The plan of one rank of several. All ranks have the operations of one plan and use different
// parts of its buffers.
#pragma once

#include "plan/step_plan.h"

namespace stepgate {

// Returns the plan of one rank: it uses the rank's own parts and its own range of the batches, and
// has the host work of this rank only. `rank` is less than the plan's number of ranks.
StepPlan plan_of_rank(StepPlan, int rank);

}  // namespace stepgate
