// SPDX-License-Identifier: MIT
// The metrics of plan evidence: what a plan says about a step without running it.
#pragma once

#include "plan/plan_facts.h"
#include "plan/step_plan.h"

namespace stepgate {

Tally tally_of(const StepPlan&, const Operation&);

// Computes the counts, in total and by phase, and which of them a trace may show differently. The
// facts of operations and memory must be known.
void count(const StepPlan&, PlanFacts&);

}  // namespace stepgate
