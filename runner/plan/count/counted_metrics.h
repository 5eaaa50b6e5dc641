// SPDX-License-Identifier: MIT
// Metrics that follow from a plan, without running the step.
#pragma once

#include "plan/plan_facts.h"
#include "plan/step_plan.h"

namespace stepgate {

Tally tally_of(const StepPlan&, const Operation&);

// Computes the counts, in total and by phase, and the set of counts that a trace may show
// differently. The facts of operations and memory must be known.
void count(const StepPlan&, PlanFacts&);

}  // namespace stepgate
