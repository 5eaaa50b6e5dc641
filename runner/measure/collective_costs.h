// SPDX-License-Identifier: MIT
// Times of collectives on a device of several ranks, for its profile.
#pragma once

#include <span>

#include "device/device.h"
#include "device/profile.h"
#include "plan/derive/collective_probes.h"

namespace stepgate {

// By the probes of a count of ranks, which must be there; half a minute on GPUs. Throws
// DeviceError, also where the device has no notion of time.
CollectiveCosts measure_collective_costs(Device&, std::span<const CollectiveProbe>);

}  // namespace stepgate
