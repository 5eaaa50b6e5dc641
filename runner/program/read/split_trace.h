// SPDX-License-Identifier: MIT
// Where the time of a step of a recorded program goes, by the rules of time_breakdown.h.
#pragma once

#include "measure/trace/traced.h"
#include "program/read/count_trace.h"

namespace stepgate {

// The time parts, the work by kernel, and the counts as values of metrics. The window goes from the
// first kernel of the first counted step to the first kernel of the last one, or of a single step
// to its last work. What limits a kernel is told by its name, as no trace says it: matrix products,
// convolutions and attention are arithmetic, all others are memory.
// Several devices of one process: the one with most work. Empty where no step is counted.
TracedStep split_trace(const ProfilerTrace&, const CountedTrace&);

// Whether arithmetic limits a kernel, by its name.
bool is_limited_by_arithmetic(std::string_view kernel);

}  // namespace stepgate
