// SPDX-License-Identifier: MIT
// Decides assertions about times, and about shares of time in a traced step, by their tests, with
// one contrast per round. The measurement determines how many rounds there are.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "judge/judge.h"

namespace stepgate {

// Decides an assertion of timed or traced evidence and fills in its verdict; the test continues
// from earlier contrasts. It stays undecided where the rounds raise a doubt (doubts.h) or were
// disturbed, unless earlier runs have decided it.
void decide_by_rounds(const Expectation&, const Scenario&, std::span<const Subject>,
                      const Measurement&, const JudgeSettings&, const EarlierRounds& earlier,
                      const std::optional<std::string>& disturbance, AssertionVerdict&);

// Returns whether these rounds, without earlier ones, decide every assertion of traced evidence, so
// that more rounds would change no outcome.
bool traced_rounds_decide(const Scenario&, std::span<const Subject>, const Traced&,
                          const JudgeSettings&);

}  // namespace stepgate
