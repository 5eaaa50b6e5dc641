// SPDX-License-Identifier: MIT
// Runs [calibrate] for one planned scenario on a device that traces; used by `run`'s tracing
// process and by workers that count. measure/trace/calibrate.h searches.
#pragma once

#include "measure/trace/traced.h"
#include "verbs/planned.h"

namespace stepgate {

// The scenario must have [calibrate]. Throws DeviceError.
Calibrated calibrate_planned(Device&, const Arguments&, const Planned&, std::uint64_t seed);

}  // namespace stepgate
