// SPDX-License-Identifier: MIT
// Counts how often the driver's stream-ordered pool gives memory back while a step repeats.
// async_pool.h says how much it holds in between.
#pragma once

#include <optional>

#include "plan/step_plan.h"

namespace stepgate {

// The average number of waits per step (for a stream, an event or the device) at which the pool
// holds more than its limit. A second wait in a row finds nothing to give back, and neither does a
// poll. nullopt where the period of the operations is so long that counting would take too long.
std::optional<double> pool_returns_per_step(const StepPlan&);

}  // namespace stepgate
