// SPDX-License-Identifier: MIT
// A planned step for people: its operations, buffers and counts, or its device memory.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "plan/planned_step.h"
#include "plan/step_plan.h"

namespace stepgate {

// The operations in the order the host issues them, with phase, stream and work; the buffers by
// purpose; the counts.
void print_plan(std::ostream&, const PlannedStep&);

// Prints the bytes that are live by purpose while the step goes on. It adds what the step needs at
// least, what an arena takes, what the plan holds as it is, and the largest buffers at the peak.
// About 40 lines at most.
void print_memory(std::ostream&, const PlannedStep&);

// operations fits a screen

// Operations in a row, inclusive.
struct OperationGroup {
  Phase phase = Phase::forward;  // of the first that does work
  std::string name;              // "layer 3", "layer 0 to 7", "copy the batch"
  std::size_t first = 0;
  std::size_t last = 0;
};

// In the order of the host, at most `most` of them. What the names have before ": " is one group;
// allocations, releases, events and waits belong to the work beside them. Where that is too much,
// neighbours of one phase are put together first.
std::vector<OperationGroup> operation_groups(const StepPlan&, std::size_t most);

}  // namespace stepgate
