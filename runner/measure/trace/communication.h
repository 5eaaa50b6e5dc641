// SPDX-License-Identifier: MIT
// What a trace of one rank says of its communication, and of when the others came.
#pragma once

#include <map>

#include "measure/trace/time_breakdown.h"

namespace stepgate {

// Times are within the window; a ratio without anything to divide by is absent. Of a plan of
// several ranks.
void add_communication(const Trace&, const PlannedStep&, const TraceWindow&, const DeviceTime&,
                       std::map<Metric, double>& values);

}  // namespace stepgate
