// SPDX-License-Identifier: MIT
// How a trace is laid out in rows, for files and pictures of it: where steps begin, and which
// stream of the device is which of the plan. Work that overlaps gets a row of its own. measure/
// computes numbers about a trace.
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

// For each stretch the lowest row on which it overlaps none before it. `stretches` in the order of
// `begin`.
std::vector<int> rows_without_overlap(std::span<const Stretch> stretches);

// The same, but a stretch may lie within another one of its row. `stretches` in the order of
// `begin`, the longer first.
std::vector<int> rows_with_nesting(std::span<const Stretch> stretches);

struct NumberedStep {
  std::int64_t number = 0;
  Stretch when;
};

// From the host's first span of a step to its first span of the next; the last step ends with its
// last span.
std::vector<NumberedStep> steps_of_the_host(const Trace&);

// The host's spans of one phase in a row, within one step; what is the runner's own interrupts it.
struct PhaseOfTheHost {
  Phase phase = Phase::host;
  Stretch when;
};
std::vector<PhaseOfTheHost> phases_of_the_host(const StepPlan&, const Trace&);

// The work of one phase and step in a row on one stream. Where phases overlap, one is cut where the
// next begins: a row holds one at a time.
struct PhaseOfAStream {
  int stream = 0;
  Phase phase = Phase::host;
  std::int64_t step = 0;
  Stretch when;
};
std::vector<PhaseOfAStream> phases_of_streams(const StepPlan&, const Trace&);

// The plan's name of each stream that work ran on: "compute". Empty where only the runner used it.
std::map<int, std::string> names_of_streams(const StepPlan&, const Trace&);

// "rank 1"; of one that stands for others "ranks 0 and 2 to 63, alike".
std::string name_of_ranks(const Trace&);

// Whether its times can be compared with those of other ranks.
bool shares_its_clock(const Trace&);

}  // namespace stepgate
