// SPDX-License-Identifier: MIT
// Decides a scenario whose variants run programs of the user: counts each in a launch of its own,
// and times them against each other in launches in which they are held between steps.
#pragma once

#include <cstdint>

#include "line/decide.h"
#include "program/run_attached.h"

namespace stepgate {

// The launch of a variant in which its steps are counted.
AttachRequest counting_request(const Variant&);

// Runs each variant, one after the other, until its steps are counted. If an assertion needs times
// or memory, launches all of them held, anew for every round, until it is decided or the budget is
// spent. A program that fails is the failure of the verdict. Throws RequestError for a program that
// cannot be started, Interrupted.
Decided decide_programs(const Planned&, const LineArguments&, std::uint64_t seed, JudgeSettings,
                        const ProgressSink& = {});

}  // namespace stepgate
