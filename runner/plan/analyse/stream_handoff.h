// SPDX-License-Identifier: MIT
// Finds where the stream that memory is allocated for, mostly the compute stream, hands it to
// another stream and gets it back.
#pragma once

#include <cstddef>

#include "plan/step_plan.h"

namespace stepgate {

// Index of the last event record on the compute stream that this operation's stream has waited for,
// directly or through other streams. All that the compute stream issued before it is complete when
// the operation starts. The operation's own index if its stream is ordered with the compute stream,
// or never waited.
std::size_t last_awaited_record(const StepPlan&, std::size_t operation);

// Index of the next wait of a stream for an event recorded after this operation, on the operation's
// stream or on one that waited for it. The operation is complete before the waiting stream's later
// work. The operation's own index if the two streams are ordered, or the stream never waits.
std::size_t next_awaiting_wait(const StepPlan&, std::size_t operation,
                               int waiting_stream = compute_stream);

}  // namespace stepgate
