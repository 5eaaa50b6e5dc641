// SPDX-License-Identifier: MIT
// Everything that is found out about a plan without a device, at once.
#pragma once

#include "plan/plan_facts.h"
#include "plan/step_plan.h"

namespace stepgate {

PlanFacts facts_of(const StepPlan&);

}  // namespace stepgate
