// SPDX-License-Identifier: MIT
// Where the compute stream gives memory to another stream and gets it back: what the step allocates
// and releases, it does on the compute stream.
#pragma once

#include <cstddef>

#include "plan/step_plan.h"

namespace stepgate {

// Index of the last record of an event on the compute stream that this operation's stream has
// waited for, itself or through streams in between: all that the compute stream issued before it is
// complete when the operation starts. The operation's own index on a stream that the compute stream
// is ordered with, or where its stream never waited.
std::size_t last_awaited_record(const StepPlan&, std::size_t operation);

// Index of the next wait of the compute stream for an event that this operation's stream has
// recorded since, or a stream that has waited for such an event: what the compute stream does after
// it finds the operation complete. Else as
// above.
std::size_t next_awaiting_wait(const StepPlan&, std::size_t operation);

}  // namespace stepgate
