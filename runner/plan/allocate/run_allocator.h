// SPDX-License-Identifier: MIT
// Simulates the allocations and releases of a plan on memory of unlimited size.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plan/allocator_simulation.h"
#include "plan/memory_event.h"
#include "plan/step_plan.h"

namespace stepgate {

// Why the allocator refuses memory that is kept from step to step. Then no step can run.
struct CannotLoad {
  std::string reason;
  std::string way_out;
};

struct CountedAllocations {
  AllocatorSimulation simulation;
  std::vector<DriverCalls> calls;  // by operation of the plan
};

// Requires a plan with an allocator. Records every event in `history` unless it is null.
std::variant<CountedAllocations, CannotLoad> run_allocator(const StepPlan&, std::int64_t steps,
                                                           MemoryHistory* history = nullptr);

}  // namespace stepgate
