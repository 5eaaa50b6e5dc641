// SPDX-License-Identifier: MIT
// One planned scenario, traced in this process: what a run's tracing process does for each, and
// what suffices where nothing is timed for good.
#pragma once

#include "measure/trace/traced.h"
#include "verbs/planned.h"

namespace stepgate {

// With its knob calibrated where it asks for that. Throws DeviceError.
Traced trace_planned(Device&, const Arguments&, const Planned&, const JudgeSettings&,
                     std::uint64_t seed);

}  // namespace stepgate
