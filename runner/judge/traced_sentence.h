// SPDX-License-Identifier: MIT
// Decides sentences about where the time of a traced step goes: by the same tests as timed ones,
// one contrast a traced round. Which rounds were traced, and when, is measure's.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "judge/judge.h"

namespace stepgate {

// A sentence of traced evidence, into the verdict that names it; its test goes on from earlier
// contrasts. A disturbance of the surroundings leaves it undecided, as it leaves timed ones.
void decide_traced(const Expectation&, const Scenario&, std::span<const StepPlan>,
                   const Measurement&, const JudgeSettings&, const Contrasts& earlier,
                   const std::optional<std::string>& disturbance, SentenceVerdict&);

// Whether these rounds, without any from earlier, decide every sentence of traced evidence.
bool traced_rounds_decide(const Scenario&, std::span<const StepPlan>, const Traced&,
                          const JudgeSettings&);

}  // namespace stepgate
