// SPDX-License-Identifier: MIT
// The metrics of plan evidence: what a plan says about a step without running it.
#pragma once

#include "plan/plan_facts.h"
#include "plan/step_plan.h"

namespace stepgate {

Tally tally_of(const StepPlan&, const Operation&);

// The counts, of all operations and by phase, and which of them a trace may have otherwise. The
// facts of its operations and its memory are known already.
void count(const StepPlan&, PlanFacts&);

}  // namespace stepgate
