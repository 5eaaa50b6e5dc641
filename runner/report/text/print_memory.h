// SPDX-License-Identifier: MIT
// The memory of a step as a table over its operations. As a picture: draw_memory.h.
#pragma once

#include <iosfwd>

#include "plan/planned_step.h"

namespace stepgate {

// Prints the bytes that are live by purpose while the step goes on. It adds what the step needs at
// least, what an arena takes, what the plan holds as it is, and the largest buffers at the peak.
// About 40 lines at most.
void print_memory(std::ostream&, const PlannedStep&);

}  // namespace stepgate
