// SPDX-License-Identifier: MIT
// How long a segment is and in which order the variants run: pure functions of a subject, the time
// of its step and the seed. measure.cpp runs them.
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

// The number of steps after which all periodic work has completed whole periods; nothing if it
// exceeds `most`.
std::optional<std::int64_t> common_period(const Subject&, std::int64_t most);

// Describes periodic work whose period does not divide the length of a segment.
struct UncoveredWork {
  const PeriodicWork* rarest = nullptr;  // null: they hold whole periods of everything
  double seconds_a_step = 0;             // on average
  double most_seconds = 0;               // at once
  double share_of_steps = 0;             // that have any of it, at most
};

// Without what is rarer than `most` steps; nothing is known of segments of no steps.
UncoveredWork uncovered_work(std::span<const PeriodicWork>, std::int64_t segment_steps,
                             std::int64_t most = std::numeric_limits<std::int64_t>::max());

// Steps at the start of a segment that are not scored: enough that the queue is as deep as it will
// get, since the segment before it ended with an empty one, and that the batches are used up which
// a loader made in the meantime. At least 1.
std::int64_t wash_out_steps(const Subject&, std::chrono::nanoseconds step_time);

// Scored steps a segment, as many for every variant: means, maxima and percentiles of different
// numbers of steps are biased against each other where some steps take far longer than others.
// About 5 ms of the fastest variant or 8 ms of the slowest, whichever are fewer steps, and no
// fewer than the slowest one washes out, at most knobs.steps; no fewer than half of
// knobs.fewest_steps, since a round has two. Then as many as make it hold whole periods of
// everything that the subjects do every n steps, so that every segment pays for the same rare
// operations: where knobs.steps allows it, and beyond that where it takes no variant longer than
// 100 ms, or than leaves time for twelve rounds. `step_times` are those of the subjects, in
// their order.
std::int64_t segment_steps(std::span<const Subject>, const MeasureKnobs&,
                           std::span<const std::chrono::nanoseconds> step_times);

// A fresh uniform permutation of the first `count` numbers: the order of a round, and the slots of
// its variants. Swapping the labels of two variants leaves its distribution unchanged.
std::vector<int> permutation(int count, Random&);

}  // namespace stepgate
