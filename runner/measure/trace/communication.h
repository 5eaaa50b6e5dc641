// SPDX-License-Identifier: MIT
// Metrics of communication in a trace of one rank, using the arrival times of the other ranks.
#pragma once

#include <map>

#include "measure/trace/time_breakdown.h"

namespace stepgate {

// Adds the metrics of communication within the window. A ratio with a denominator of 0 is left out.
// The plan must have several ranks.
void add_communication(const Trace&, const PlannedStep&, const TraceWindow&, const DeviceTime&,
                       std::map<Metric, double>& values);

}  // namespace stepgate
