// SPDX-License-Identifier: MIT
// The variants of a measurement in a few numbers each, over all rounds. For reading, not deciding.
#pragma once

#include <span>
#include <vector>

#include "judge/verdict/sides.h"
#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"
#include "scenario/scenario.h"

namespace stepgate {

// One for each plan, in order, with the counts that sentences of the scenario name. Mean over all
// scored steps; percentiles by nearest rank over the single step times; nothing where there were no
// rounds or the device does not know.
std::vector<VariantSummary> summaries_of(const Scenario&, std::span<const PlannedStep>,
                                         const Measurement&);

}  // namespace stepgate
