// SPDX-License-Identifier: MIT
// Where the compute stream gives memory to another stream and gets it back: what the step allocates
// and releases, it does on the compute stream.
#pragma once

#include <cstddef>

#include "plan/step_plan.h"

namespace stepgate {

// What the compute stream does before the operation with this index is over before that one uses
// anything: the last of its records that the operation's stream has waited for, or a stream that it
// has waited for. The operation itself on a stream that the compute stream is ordered with, or
// where nothing is handed off.
std::size_t last_awaited_record(const StepPlan&, std::size_t operation);

// What the compute stream does after this index finds that operation over: the next wait for an
// event that its stream has recorded since, or a stream that has waited for such a one. Else as
// above.
std::size_t next_awaiting_wait(const StepPlan&, std::size_t operation);

}  // namespace stepgate
