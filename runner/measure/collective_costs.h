// SPDX-License-Identifier: MIT
// Measures the times of collectives on a device of several ranks, for its profile.
#pragma once

#include <span>

#include "device/device.h"
#include "device/profile.h"
#include "plan/derive/collective_probes.h"

namespace stepgate {

// Runs the probes, which must be planned for the ranks that are present; takes half a minute on
// GPUs. Throws DeviceError, also where the device does not measure time.
CollectiveCosts measure_collective_costs(Device&, std::span<const CollectiveProbe>);

}  // namespace stepgate
