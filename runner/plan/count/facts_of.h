// SPDX-License-Identifier: MIT
// Everything that is found out about a plan without a device, at once.
#pragma once

#include <vector>

#include "plan/planned_step.h"

namespace stepgate {

PlanFacts facts_of(const StepPlan&);

PlannedStep with_facts(StepPlan);
std::vector<PlannedStep> with_facts(std::vector<StepPlan>);

}  // namespace stepgate
