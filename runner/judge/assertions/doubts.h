// SPDX-License-Identifier: MIT
// Assumptions behind the rates of a comparison that its own rounds can contradict. Such a
// comparison is not decided, whatever its e-values are.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"
#include "measure/subject.h"
#include "scenario/assertions/expectation.h"

namespace stepgate {

// In words, of an assertion of timed evidence with this ratio of its sides: a variant does
// something every n steps that its segments do not pass whole periods of, and by the plan that
// would bring the ratio nearer to its limit by more than a fifth of the distance. A percentile of
// the steps does not see what is much rarer than the steps beyond it.
std::optional<std::string> doubt_about_rare_work(const Expectation&, std::span<const Subject>,
                                                 const Measurement&, double ratio);

// In words, of a comparison, the first of these that is there:
// - rare work, as above;
// - what one variant leaves behind costs the other: their ratio is another after steps of their own
//   than after those of others, by more than a fifth of that distance;
// - the ratio changed while it was measured, by more than half that distance: the halves of the run
//   disagree, or rounds agree with the round before.
// The last two at a level of 0.1 % each.
std::optional<std::string> doubt_about(const Expectation&, std::span<const Subject>,
                                       const Measurement&, const TimedEvidence&);

}  // namespace stepgate
