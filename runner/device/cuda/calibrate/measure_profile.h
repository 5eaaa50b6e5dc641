// SPDX-License-Identifier: MIT
// Measures the local GPU's device profile: what the simulated device needs to know of it.
#pragma once

#include "device/profile.h"

namespace stepgate {

// Takes less than 2 GiB of device memory. `measured` is left empty: the caller knows
// the date. The noise is not measured. Throws DeviceError.
DeviceProfile measure_profile();

}  // namespace stepgate
