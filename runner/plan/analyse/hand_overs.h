// SPDX-License-Identifier: MIT
// Where the compute stream gives memory to another stream and gets it back: what the step allocates
// and releases, it does on the compute stream.
#pragma once

#include <cstddef>

#include "plan/step_plan.h"

namespace stepgate {

// What the compute stream does before the operation with this index is over before that one uses
// anything: the record of the event that its stream has waited for last. The operation itself on a
// stream that the compute stream is ordered with, or where nothing hands over.
std::size_t handed_over_at(const StepPlan&, std::size_t operation);

// What the compute stream does after this index finds that operation over: the next wait for an
// event that its stream has recorded since. Else as above.
std::size_t handed_back_at(const StepPlan&, std::size_t operation);

}  // namespace stepgate
