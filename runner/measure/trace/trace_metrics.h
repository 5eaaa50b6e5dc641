// SPDX-License-Identifier: MIT
// Computes metrics per step from a trace: counts from calls and work, and shares of time from the
// timeline. time_breakdown.h says where the time goes; the judge interprets the numbers.
#pragma once

#include "measure/trace/traced.h"
#include "plan/planned_step.h"

namespace stepgate {

// Returns the trace without the steps that only close it.
Trace counted_part(Trace);

// Counts cover all that the host issued in the traced steps for operations of the plan, divided by
// the number of steps. Calls of the runner itself, and fills that a library makes within a kernel's
// launch, are not counted. A count is left out if an operation contributes to it that does not act
// equally often in every group of so many steps. Shares of time are within window_of, and absent
// where the denominator is 0. The trace must belong to that plan.
TracedStep summary_of(const Trace&, const PlannedStep&);

// The amount that one call, or one piece of work of a plan's operation, adds to a count; 0 for most
// counts.
// A library may run several kernels for one request, such as a GEMM whose depth it splits. The
// kernels of one operation count as one launch, and those of a collective as none.
double amount_of(const Trace&, const HostCall&, const StepPlan&, Metric);
double amount_of(const DeviceWork&, const StepPlan&, Metric);

}  // namespace stepgate
