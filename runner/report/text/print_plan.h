// SPDX-License-Identifier: MIT
// A step plan as a person would draw it.
#pragma once

#include <iosfwd>

#include "plan/planned_step.h"

namespace stepgate {

// The operations in the order the host issues them, with phase, stream and work; the buffers by
// purpose; the counts.
void print_plan(std::ostream&, const PlannedStep&);

}  // namespace stepgate
