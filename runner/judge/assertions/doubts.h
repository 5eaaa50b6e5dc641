// SPDX-License-Identifier: MIT
// Checks assumptions behind the error rates of a comparison that its own rounds can contradict. A
// comparison with such a doubt stays undecided, whatever its e-values.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"
#include "measure/subject.h"
#include "scenario/assertions/expectation.h"

namespace stepgate {

// Returns the doubt, in words, that a variant has periodic work of which its segments do not hold
// whole periods, and which by the plan would bring the ratio nearer to its limit by more than a
// fifth of the distance. `ratio` is the ratio of the sides of a timed assertion. Percentiles ignore
// work that is much rarer than the steps beyond them.
std::optional<std::string> doubt_about_rare_work(const Expectation&, std::span<const Subject>,
                                                 const Measurement&, double ratio);

// Returns the first doubt about a comparison, in words:
// - rare work, as above;
// - carry-over: the ratio after steps of the same variant differs from that after steps of others,
//   by more than a fifth of the distance to the limit;
// - the ratio changed during measurement by more than half that distance: the halves of the run
//   differ, or successive rounds are correlated.
// The last two are tested at a level of 0.1 % each.
std::optional<std::string> doubt_about(const Expectation&, std::span<const Subject>,
                                       const Measurement&, const TimedEvidence&);

}  // namespace stepgate
