// SPDX-License-Identifier: MIT
// Prints a planned step: its operations, buffers and counts, or its device memory.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "plan/planned_step.h"
#include "plan/step_plan.h"

namespace stepgate {

// Prints the operations in the order in which the host issues them, with phase, stream and work;
// the buffers by purpose; and the counts.
void print_plan(std::ostream&, const PlannedStep&);

// Prints the live bytes by purpose over the step, in at most about 40 lines. Also prints the least
// memory that the step needs, the size of an arena, the planned memory, and the largest buffers at
// the peak.
void print_memory(std::ostream&, const PlannedStep&);

// This number of operations fits on a screen.

// A range of operations, inclusive.
struct OperationGroup {
  Phase phase = Phase::forward;  // of the first operation that does work
  std::string name;              // "layer 3", "layer 0 to 7", "copy the batch"
  std::size_t first = 0;
  std::size_t last = 0;
};

// Groups the operations, in the order of the host, into at most `most` groups. Operations with the
// same name before ": " form one group; allocations, releases, events and waits belong to the
// adjacent work. Where there are too many groups, neighbours of one phase are merged first.
std::vector<OperationGroup> operation_groups(const StepPlan&, std::size_t most);

}  // namespace stepgate
