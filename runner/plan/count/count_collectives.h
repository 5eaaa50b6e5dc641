// SPDX-License-Identifier: MIT
// What a step of several ranks communicates, as far as its plan knows.
#pragma once

#include "plan/plan_facts.h"

namespace stepgate {

// Bytes that a rank sends where the payload goes round a ring, as NCCL's ring algorithms have it:
// (n-1)/n of it for n ranks, and of an all-reduce, which scatters and gathers, twice that. The same
// of its trees on average over the ranks.
double ring_wire_bytes(const Collective&, int ranks);

// Adds the counts of collectives that are no plain sums over operations, and the bytes of a rank's
// state.
void count_collectives(const StepPlan&, PlanFacts&);

}  // namespace stepgate
