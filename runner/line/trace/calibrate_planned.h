// SPDX-License-Identifier: MIT
// [calibrate] of one planned scenario, on a device that traces: what `run`'s tracing process and a
// worker that counts share. measure/trace/calibrate.h searches.
#pragma once

#include "line/planned.h"
#include "measure/trace/traced.h"

namespace stepgate {

// The scenario must be one that is to be calibrated. Throws DeviceError.
Calibrated calibrate_planned(Device&, const LineArguments&, const Planned&, std::uint64_t seed);

}  // namespace stepgate
