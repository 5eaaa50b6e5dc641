// SPDX-License-Identifier: MIT
// Arranges a trace in rows, for files and pictures: where steps begin, and which device stream is
// which stream of the plan. Overlapping work gets separate rows. measure/ computes metrics of a
// trace.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "device/trace.h"

namespace stepgate {

struct Stretch {
  TraceTime begin{0};
  TraceTime end{0};
};

// Returns for each stretch the lowest row where it overlaps no earlier one. `stretches` must be
// ordered by `begin`.
std::vector<int> rows_without_overlap(std::span<const Stretch> stretches);

// Returns for each stretch the lowest row where it overlaps no earlier one, except that it may lie
// within one. `stretches` must be ordered by `begin`, the longer first.
std::vector<int> rows_with_nesting(std::span<const Stretch> stretches);

struct NumberedStep {
  std::int64_t number = 0;
  Stretch when;
};

// Each step goes from the host's first span of it to the first span of the next step; the last step
// ends with its last span.
std::vector<NumberedStep> steps_of_the_host(const Trace&);

// Consecutive spans of the host in one phase of one step. Spans of the runner itself interrupt it.
struct PhaseOfTheHost {
  Phase phase = Phase::host;
  Stretch when;
};
std::vector<PhaseOfTheHost> phases_of_the_host(const StepPlan&, const Trace&);

// Consecutive work of one phase and step on one stream. Where phases overlap, the earlier one ends
// where the next begins, since a row holds one at a time.
struct PhaseOfAStream {
  int stream = 0;
  Phase phase = Phase::host;
  std::int64_t step = 0;
  Stretch when;
};
std::vector<PhaseOfAStream> phases_of_streams(const StepPlan&, const Trace&);

// The plan's name of each stream with work, such as "compute". Empty where only the runner used it.
std::map<int, std::string> names_of_streams(const StepPlan&, const Trace&);

// "rank 1"; for a trace that represents several ranks "ranks 0 and 2 to 63, alike".
std::string name_of_ranks(const Trace&);

// Returns whether its times can be compared with those of other ranks.
bool shares_its_clock(const Trace&);

}  // namespace stepgate
