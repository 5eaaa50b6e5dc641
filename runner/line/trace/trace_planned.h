// SPDX-License-Identifier: MIT
// Traces one planned scenario in this process: used by a run's tracing process, and directly where
// nothing is timed.
#pragma once

#include "line/planned.h"
#include "measure/trace/traced.h"

namespace stepgate {

// Whether timelines are drawn, or traces are only judged.
enum class Timelines { drawn, judged };

// Traces a scenario; calibrates its knob first if the scenario requests it. If timelines are not
// drawn, keeps only those of traces that differ from their plans, since they show where they
// differ. Throws DeviceError.
Traced trace_planned(Device&, const LineArguments&, const Planned&, const JudgeSettings&,
                     std::uint64_t seed, Timelines = Timelines::drawn);

}  // namespace stepgate
