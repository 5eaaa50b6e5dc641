// SPDX-License-Identifier: MIT
// How long a segment is and in which order the variants run: pure functions of the plans, the pilot
// and the seed. Running them is measure.cpp's.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/step_plan.h"
#include "scenario/scenario.h"
#include "support/random.h"

namespace stepgate {

// After so many steps everything that happens every n steps has happened equally often; 1 when that
// is more than `most`.
std::int64_t common_period(std::span<const StepPlan>, std::int64_t most);

// Steps at the start of a segment that are not scored: enough that the queue is as deep as it will
// get, since the segment before it ended with an empty one, and that the batches are used up which
// the loader made in the meantime. From the pilot's time a step of each variant.
std::int64_t wash_out_steps(std::span<const StepPlan>,
                            std::span<const std::chrono::nanoseconds> step_times);

// Scored steps a segment to begin with, from the time a step of each variant: about 5 ms of the
// fastest variant and no fewer steps than the wash-out, but within 100 ms of the slowest, between 3
// and knobs.steps. A multiple of every period in the plans (an operation every n steps) where
// knobs.steps leaves room, so that every segment pays for the same rare operations.
std::int64_t segment_steps(std::span<const StepPlan>, const MeasureKnobs&,
                           std::span<const std::chrono::nanoseconds> step_times);

// The order of the variants in every pass of a round: a first one and its rotations, so that each
// variant runs in each place once and a steady drift cancels. `random`: the first one is a fresh
// uniform permutation; `abba`: the file's order or its reverse, by a fair coin. Of two variants
// this is ABBA or BAAB, and swapping their labels leaves the distribution unchanged; for more, only
// `random` does.
std::vector<std::vector<int>> pass_orders(RoundOrder, int variants, Random&);

// The slot of every variant in every pass: a random arrangement, then its rotations, so that each
// variant is in each slot once.
std::vector<std::vector<int>> slot_rotations(int variants, Random&);

}  // namespace stepgate
