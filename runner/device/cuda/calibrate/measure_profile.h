// SPDX-License-Identifier: MIT
// Measures the device profile of the local GPU, with the costs that the simulated device needs.
#pragma once

#include "device/profile.h"

namespace stepgate {

// Measures the profile; takes less than 2 GiB of device memory. `measured` stays empty, since the
// caller knows the date. The noise is not measured. Throws DeviceError.
DeviceProfile measure_profile();

}  // namespace stepgate
