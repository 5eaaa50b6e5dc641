// SPDX-License-Identifier: MIT
// The rank whose numbers count where several ranks were traced: for each metric the one that is
// worst at it. Numbers are never averaged over ranks.
#pragma once

#include <span>

#include "measure/trace/traced.h"

namespace stepgate {

// Fills in `variants` of all rounds, and `worst`, from what their ranks say. A traced metric, and
// the time of one kernel, is that of the rank whose median over the rounds is worst. All else is of
// the rank that most often comes last to its collectives; where that is not known, of the rank
// whose traced steps take longest. Every round has the same ranks.
void take_worst_ranks(Traced&);

// The steps of each rank in one round, by rank: one for a step of one rank, none for an anchor,
// which is never traced.
std::span<const TracedStep> ranks_of(const TracedRound&, std::size_t variant);

}  // namespace stepgate
