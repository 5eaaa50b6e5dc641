// SPDX-License-Identifier: MIT
// Decides assertions about times, and about where the time of a traced step goes: by their tests, a
// contrast a round. The measuring decides which rounds there are, and when.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "judge/judge.h"

namespace stepgate {

// An assertion of timed or traced evidence, into the verdict that names it; its test goes on from
// earlier contrasts. It stays undecided where the rounds themselves raise a doubt (doubts.h) or
// something disturbed them, unless earlier runs have decided it.
void decide_by_rounds(const Expectation&, const Scenario&, std::span<const Subject>,
                      const Measurement&, const JudgeSettings&, const EarlierRounds& earlier,
                      const std::optional<std::string>& disturbance, AssertionVerdict&);

// Whether more rounds than these, without any from earlier, could change the outcome of no
// assertion of traced evidence.
bool traced_rounds_decide(const Scenario&, std::span<const Subject>, const Traced&,
                          const JudgeSettings&);

}  // namespace stepgate
