// SPDX-License-Identifier: MIT
// Computes segment lengths and the order of variants, as pure functions of a subject, its step time
// and the seed. measure.cpp runs the segments.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "measure/subject.h"
#include "scenario/scenario.h"

namespace stepgate {

// Returns the steps of whole periods that are whole turns of a loader as well, or `period` where
// those are more than `most`.
std::int64_t whole_turns(std::int64_t period, std::int64_t turn, std::int64_t most);

// Returns the number of steps after which all periodic work has completed whole periods, and the
// loader its turn if that fits; nullopt if the periods exceed `most`.
std::optional<std::int64_t> common_period(const Subject&, std::int64_t most);

// Describes periodic work whose period does not divide the length of a segment.
struct UncoveredWork {
  const PeriodicWork* rarest = nullptr;  // null: segments hold whole periods of all work
  double seconds_a_step = 0;             // mean time of uncovered work
  double most_seconds = 0;               // longest uncovered work of one step
  double share_of_steps = 0;             // share of steps with any uncovered work, at most
};

// Ignores work that happens less than once in `most` steps, and returns nothing for segments of 0
// steps.
UncoveredWork uncovered_work(std::span<const PeriodicWork>, std::int64_t segment_steps,
                             std::int64_t most = std::numeric_limits<std::int64_t>::max());

// Returns the number of unscored steps at the start of a segment, at least 1. They fill the queue,
// which is empty after the segment before, and use up the batches that a loader prefetched
// meanwhile.
std::int64_t wash_out_steps(const Subject&, std::chrono::nanoseconds step_time);

// Returns the scored steps of a segment, the same for every variant: with different numbers of
// steps, means, maxima and percentiles are biased against each other where some steps take far
// longer.
// A segment has about 5 ms of the fastest variant or 8 ms of the slowest, whichever is fewer steps,
// and at least the slowest one's wash-out steps. It has at most knobs.steps, and at least half of
// knobs.fewest_steps, since a round has two segments.
// It is then rounded up to whole periods of all periodic work, so that every segment pays for the
// same rare operations. This may exceed knobs.steps where no variant's segment takes longer than
// 100 ms, or where the budget still has room for twelve rounds.
// `step_times` has the step time of each subject, in their order.
std::int64_t segment_steps(std::span<const Subject>, const MeasureKnobs&,
                           std::span<const std::chrono::nanoseconds> step_times);

// Returns a random permutation of the first `count` numbers, uniformly distributed: the order of a
// round, or the slots of its variants. Swapping the labels of two variants leaves its distribution
// unchanged.
std::vector<int> permutation(int count, Random&);

}  // namespace stepgate
