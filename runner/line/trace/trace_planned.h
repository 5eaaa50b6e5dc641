// SPDX-License-Identifier: MIT
// Traces one planned scenario in this process: used by a run's tracing process, and directly where
// nothing is timed.
#pragma once

#include "line/planned.h"
#include "measure/trace/traced.h"

namespace stepgate {

// Whether timelines are drawn, or traces are only judged.
enum class Timelines { drawn, judged };

// Calibrates the knob first if the scenario requests it. If timelines are not drawn, keeps only
// those of traces that differ from their plans: they show where the two part. Throws DeviceError.
Traced trace_planned(Device&, const LineArguments&, const Planned&, const JudgeSettings&,
                     std::uint64_t seed, Timelines = Timelines::drawn);

}  // namespace stepgate
