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

// Simulated steps of a plan's allocator, by which its largest amounts, slope and driver calls are
// known.
struct SimulatedSteps {
  std::int64_t steps = 0;  // at least those that the scenario counts
  // Whether they are enough periods of the allocator's requests. A period is the least number of
  // steps after which the same operations act again. A long one may have too many requests.
  bool know_every_step = false;
};

SimulatedSteps steps_to_simulate(const StepPlan&);

// Requires a plan with an allocator. Records every event in `history` unless it is null. With
// few periods the slope is 0; with less than one, the driver calls are those of all `steps`.
std::variant<CountedAllocations, CannotLoad> run_allocator(const StepPlan&, std::int64_t steps,
                                                           MemoryHistory* history = nullptr);

}  // namespace stepgate
