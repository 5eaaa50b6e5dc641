// SPDX-License-Identifier: MIT
// One planned scenario, traced in this process: what a run's tracing process does for each, and
// what suffices where nothing is timed for good.
#pragma once

#include "line/planned.h"
#include "measure/trace/traced.h"

namespace stepgate {

// Whether timelines are drawn, or traces are judged alone.
enum class Timelines { drawn, judged };

// Calibrates the knob first if the scenario requests it. If timelines are not drawn, keeps only
// those of traces that differ from their plans: they show where the two part. Throws DeviceError.
Traced trace_planned(Device&, const LineArguments&, const Planned&, const JudgeSettings&,
                     std::uint64_t seed, Timelines = Timelines::drawn);

}  // namespace stepgate
