// SPDX-License-Identifier: MIT
// Computes all facts about a plan that need no device.
#pragma once

#include <vector>

#include "plan/planned_step.h"

namespace stepgate {

PlanFacts facts_of(const StepPlan&);

PlannedStep with_facts(StepPlan);
std::vector<PlannedStep> with_facts(std::vector<StepPlan>);

}  // namespace stepgate
