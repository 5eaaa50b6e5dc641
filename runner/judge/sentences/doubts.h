// SPDX-License-Identifier: MIT
// What the rates of a comparison presume and its own rounds can contradict. Such a comparison is
// not decided, whatever its e-values are.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"
#include "plan/planned_step.h"
#include "scenario/sentences/expectation.h"

namespace stepgate {

// In words, the first of these that is there:
// - one of the two does something every n steps that its segments do not hold whole periods of, and
//   that costs it, by the plan, more than a fifth of the distance from the limit;
// - what one variant leaves behind costs the other: their ratio is another after steps of their own
//   than after those of others, by more than a fifth of that distance;
// - the ratio changed while it was measured, by more than half that distance: the halves of the run
//   disagree, or rounds agree with the round before.
// The last two at a level of 0.1 % each.
std::optional<std::string> doubt_about(const Expectation&, std::span<const PlannedStep>,
                                       const Measurement&, const TimedEvidence&);

}  // namespace stepgate
