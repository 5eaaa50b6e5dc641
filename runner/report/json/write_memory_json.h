// SPDX-License-Identifier: MIT
// Writes for programs what a step's allocator does; python/stepgate makes snapshots for PyTorch's
// memory viewer of it.
#pragma once

#include <iosfwd>

#include "plan/memory_event.h"
#include "plan/step_plan.h"

namespace stepgate {

// Writes one JSON object on one line, a memory_line of docs/json_schema.json: the events in their
// order, and the segments at the end. Addresses and sizes in bytes.
void write_memory_json(std::ostream&, const StepPlan&, const MemoryHistory&);

}  // namespace stepgate
