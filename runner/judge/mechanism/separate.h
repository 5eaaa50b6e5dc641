// SPDX-License-Identifier: MIT
// What separates a scenario's first variant from another one: the counts that differ, the part of
// the time that differs most, and the phase of the step in which they do.
#pragma once

#include <span>

#include "judge/verdict/mechanism.h"
#include "judge/verdict/sides.h"

namespace stepgate {

// Between the first variant and `other`. A count differs when it does so in every traced round; a
// part of the time when all rounds of one variant lie beyond all rounds of the other by at least a
// hundredth of a step. Says so when nothing differs.
Separation separation_of(std::span<const PlannedStep> variants, std::size_t other, const Traced&);

}  // namespace stepgate
