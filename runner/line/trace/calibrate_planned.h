// SPDX-License-Identifier: MIT
// Runs [calibrate] for one planned scenario on a device that traces; used by `run`'s tracing
// process and by workers that count. measure/trace/calibrate.h searches.
#pragma once

#include "line/planned.h"
#include "measure/trace/traced.h"

namespace stepgate {

// The scenario must be one that is to be calibrated. Throws DeviceError.
Calibrated calibrate_planned(Device&, const LineArguments&, const Planned&, std::uint64_t seed);

}  // namespace stepgate
