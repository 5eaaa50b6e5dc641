// SPDX-License-Identifier: MIT
// A picture of the device memory of steps, one above the other on one scale of bytes, as SVG: what
// is live over the operations, coloured by purpose, with the peak, the bound, the arena and what
// the plan holds. As a table: print_memory.h.
#pragma once

#include <iosfwd>
#include <span>

#include "plan/planned_step.h"

namespace stepgate {

// The variants of one scenario, at least one. Each has its own operations over the whole width.
void draw_memory(std::ostream&, std::span<const PlannedStep>);

}  // namespace stepgate
