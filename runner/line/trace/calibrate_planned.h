// SPDX-License-Identifier: MIT
// Runs [calibrate] for one planned scenario on a device that traces; used by `run`'s tracing
// process and by workers that count. measure/trace/calibrate.h has the search.
#pragma once

#include "line/planned.h"
#include "measure/trace/traced.h"

namespace stepgate {

// Calibrates a scenario, which must have [calibrate]. Throws DeviceError.
Calibrated calibrate_planned(Device&, const LineArguments&, const Planned&, std::uint64_t seed);

}  // namespace stepgate
