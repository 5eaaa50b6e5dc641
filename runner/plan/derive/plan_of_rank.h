// SPDX-License-Identifier: MIT
// The plan of one rank of several, which all have the operations of one plan and differ in which
// parts they touch.
#pragma once

#include "plan/step_plan.h"

namespace stepgate {

// The plan of one rank: uses of its own part, its own range of the batches, and the host work that
// only it does. `rank` is less than the plan's count.
StepPlan plan_of_rank(StepPlan, int rank);

}  // namespace stepgate
