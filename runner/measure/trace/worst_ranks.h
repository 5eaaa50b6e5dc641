// SPDX-License-Identifier: MIT
// Selects the rank whose numbers count where several ranks were traced: for each metric, the worst
// one. Numbers are never averaged over ranks.
#pragma once

#include <span>

#include "measure/trace/traced.h"

namespace stepgate {

// Fills in `variants` of all rounds, and `worst`, from the results of the ranks. A traced metric,
// and the time of a kernel, is taken from the rank whose median over the rounds is worst. All else
// is taken from the rank that most often arrives last at its collectives; where that is unknown,
// from the rank whose traced steps take longest. Every round must have the same ranks.
void take_worst_ranks(Traced&);

// Returns the results of each rank in one round, by rank: one element for a step of one rank, none
// for an anchor, which is never traced.
std::span<const TracedStep> ranks_of(const TracedRound&, std::size_t variant);

}  // namespace stepgate
