// SPDX-License-Identifier: MIT
// Checks that the work of a trace ran on the streams of its plan.
#pragma once

#include <string>

#include "device/trace.h"
#include "plan/step_plan.h"

namespace stepgate {

// Returns the first operation whose work ran on another stream than the plan's, in words that
// continue "the trace is not its plan: "; empty where there is none. The driver numbers streams as
// it likes, so each stream of the plan is the number on which the most of its work ran, and no two
// streams are the same number.
// Two kinds of work are not compared. CUDA spreads the work of a graph over streams of the graph's
// own, and a library of collectives may have streams of its own.
std::string difference_of_streams(const Trace&, const StepPlan&);

}  // namespace stepgate
