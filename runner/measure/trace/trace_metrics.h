// SPDX-License-Identifier: MIT
// From a trace to numbers a step: counts from calls and work, shares of time from the timeline.
// time_breakdown.h says where the time goes; the judge interprets the numbers.
#pragma once

#include "measure/trace/traced.h"
#include "plan/planned_step.h"

namespace stepgate {

// The trace without the steps that only close it.
Trace counted_part(Trace);

// Counts are over all that the host issued at the traced steps for operations of the plan, divided
// by the steps; what belongs to the runner itself is left out, and fills that a library makes
// within a kernel's launch are not counted. A count to which an operation contributes that does not
// act equally often in any so many steps is left out of the values. Shares of time are within the
// window of window_of, and absent where there is nothing to divide by. The trace must be of that
// plan.
TracedStep summary_of(const Trace&, const PlannedStep&);

// The amount that one call, or one piece of work of an operation of the plan, adds to a count; 0
// for most.
// A library may make several kernels of what it is asked for at once, such as a GEMM whose depth it
// splits: the kernels of one operation are one launch, and those of a collective none.
double amount_of(const Trace&, const HostCall&, const StepPlan&, Metric);
double amount_of(const DeviceWork&, const StepPlan&, Metric);

}  // namespace stepgate
