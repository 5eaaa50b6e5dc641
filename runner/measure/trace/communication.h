// SPDX-License-Identifier: MIT
// Communication in a trace of one rank, and when the other ranks came.
#pragma once

#include <map>

#include "measure/trace/time_breakdown.h"

namespace stepgate {

// Times are within the window; a ratio without anything to divide by is absent. The plan is one of
// several ranks.
void add_communication(const Trace&, const PlannedStep&, const TraceWindow&, const DeviceTime&,
                       std::map<Metric, double>& values);

}  // namespace stepgate
