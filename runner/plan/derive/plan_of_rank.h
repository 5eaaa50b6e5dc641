// SPDX-License-Identifier: MIT
// The plan of one rank of several, which all have the operations of one plan and differ in which
// parts they touch.
#pragma once

#include "plan/step_plan.h"

namespace stepgate {

// Every use where this rank has its part, its own stretch of the batches, and the host work that it
// alone does. `rank` is less than the plan's count.
StepPlan plan_of_rank(StepPlan, int rank);

}  // namespace stepgate
