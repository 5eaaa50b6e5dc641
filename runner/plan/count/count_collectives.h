// SPDX-License-Identifier: MIT
// The communication of a step of several ranks, as far as its plan knows.
#pragma once

#include "plan/plan_facts.h"

namespace stepgate {

// Adds the counts of collectives that are no plain sums over operations, and the bytes of a rank's
// state.
void count_collectives(const StepPlan&, PlanFacts&);

}  // namespace stepgate
