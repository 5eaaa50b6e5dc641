// SPDX-License-Identifier: MIT
// How often the driver's stream-ordered pool gives memory back while a step repeats. async_pool.h
// says what it holds meanwhile.
#pragma once

#include <optional>

#include "plan/step_plan.h"

namespace stepgate {

// The average number of waits a step (for a stream, an event or the device) at which the pool holds
// more than it may keep. A second wait in a row finds nothing to give back, and neither does a
// poll. nullopt where the operations repeat only after so many steps that counting would take too
// long.
std::optional<double> pool_returns_per_step(const StepPlan&);

}  // namespace stepgate
