// SPDX-License-Identifier: MIT
// How often the driver's stream-ordered pool gives memory back while a step repeats. async_pool.h
// says what it holds meanwhile.
#pragma once

#include <optional>

#include "plan/step_plan.h"

namespace stepgate {

// Waits for a stream, an event or the device at which the pool holds more than it may keep, a step
// on average. A wait that comes after another finds nothing to give back, and neither does a poll.
// Nothing where what happens every n steps comes round so late that it would take long to tell.
std::optional<double> pool_returns_per_step(const StepPlan&);

}  // namespace stepgate
