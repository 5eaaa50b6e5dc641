// SPDX-License-Identifier: MIT
// Finds where the compute stream hands memory to another stream and gets it back. A step allocates
// and releases memory on the compute stream.
#pragma once

#include <cstddef>

#include "plan/step_plan.h"

namespace stepgate {

// Index of the last event record on the compute stream that this operation's stream has waited for,
// directly or through other streams. All that the compute stream issued before it is complete when
// the operation starts. The operation's own index if its stream is ordered with the compute stream,
// or never waited.
std::size_t last_awaited_record(const StepPlan&, std::size_t operation);

// Index of the next wait of the compute stream for an event recorded after this operation, on its
// stream or on one that waited for it. The operation is complete before the compute stream's later
// work. The operation's own index where last_awaited_record returns that.
std::size_t next_awaiting_wait(const StepPlan&, std::size_t operation);

}  // namespace stepgate
