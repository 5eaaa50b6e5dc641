// SPDX-License-Identifier: MIT
// The memory of a step as a table over its operations. As a picture: draw_memory.h.
#pragma once

#include <iosfwd>

#include "plan/planned_step.h"

namespace stepgate {

// What is live by purpose while the step goes on, what the step needs at least, what an arena takes
// and what the plan holds as it is; the largest buffers at the peak. About 40 lines at most.
void print_memory(std::ostream&, const PlannedStep&);

}  // namespace stepgate
