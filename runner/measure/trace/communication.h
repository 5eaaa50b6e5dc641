// SPDX-License-Identifier: MIT
// Communication in a trace of one rank, and when the other ranks came.
#pragma once

#include <map>

#include "measure/trace/time_breakdown.h"

namespace stepgate {

// Adds the metrics of communication within the window. A ratio with a denominator of 0 is left out.
// The plan must have several ranks.
void add_communication(const Trace&, const PlannedStep&, const TraceWindow&, const DeviceTime&,
                       std::map<Metric, double>& values);

}  // namespace stepgate
