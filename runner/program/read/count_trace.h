// SPDX-License-Identifier: MIT
// From a trace of torch.profiler to the counts of a step, the same ones as those of an attached
// process (count_steps.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/count_steps.h"
#include "program/read/profiler_trace.h"

namespace stepgate {

// Times of the host in which the counted steps were issued, and the begin of what follows them.
struct TracedSteps {
  std::vector<Interval> steps;  // in order, disjoint; empty: none is known
  std::string words;            // "20 ranges ProfilerStep"
  std::int64_t first = 0;       // number of the first counted one, from 1
};

// The user's choice comes first. Otherwise steps are the ranges ProfilerStep#N of the profiler,
// or lie between ends of the first optimizer, or begin with a range `step`. The first `skip` are
// left out; of a default choice all others count, else `steps` of them.
TracedSteps steps_of(const ProfilerTrace&, const StepChoice&);

struct CountedTrace {
  CountedProcess counted;
  TracedSteps steps;
};

// Throws RequestError where the trace has calls that launch, and no work of the device: another
// tool had the GPU's records, and no number of that trace can be trusted.
CountedTrace count_trace(const ProfilerTrace&, const StepChoice&);

}  // namespace stepgate
