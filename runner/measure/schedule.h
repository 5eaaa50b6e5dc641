// SPDX-License-Identifier: MIT
// How long a segment is and in which order the variants run: pure functions of a plan, the time of
// its step and the seed. Running them is measure.cpp's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/planned_step.h"
#include "scenario/scenario.h"
#include "support/random.h"

namespace stepgate {

// After so many steps everything that happens every n steps has happened equally often. Nothing
// when that is more than `most`.
std::optional<std::int64_t> common_period(const StepPlan&, std::int64_t most);

// Steps at the start of a segment that are not scored: enough that the queue is as deep as it will
// get, since the segment before it ended with an empty one, and that the batches are used up which
// a loader made in the meantime. At least 1.
std::int64_t wash_out_steps(const PlannedStep&, std::chrono::nanoseconds step_time);

// Scored steps a segment: about 5 ms and no fewer than the wash-out, at most knobs.steps. Then as
// many as make it hold whole periods of everything in the plan that happens every n steps, so that
// every segment pays for the same rare operations: where knobs.steps allows it, and beyond that
// where it takes no longer than 100 ms.
std::int64_t segment_steps(const PlannedStep&, const MeasureKnobs&,
                           std::chrono::nanoseconds step_time);

// A fresh uniform permutation of the first `count` numbers: the order of a round, and the slots of
// its variants. Swapping the labels of two variants leaves its distribution unchanged.
std::vector<int> permutation(int count, Random&);

}  // namespace stepgate
