// SPDX-License-Identifier: MIT
// Measuring and judging one planned scenario: what `run` and `accept` share.
#pragma once

#include <functional>

#include "judge/judge.h"
#include "verbs/planned.h"

namespace stepgate {

struct Decided {
  Verdict verdict;
  Measurement measurement;
};

// After every round, with what was measured so far.
using AfterRound = std::function<void(const Measurement&)>;

// Asks for evidence until every sentence is decided and the scenario has the rounds that it wants,
// or until a signal comes. Skips what the device cannot do.
Decided decide_one(const Planned&, Device&, std::uint64_t seed, JudgeSettings,
                   const AfterRound& = {});

// A measurement that decide_one made, judged anew.
Verdict judge_one(const Planned&, const Measurement&, JudgeSettings);

}  // namespace stepgate
