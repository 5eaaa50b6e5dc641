// SPDX-License-Identifier: MIT
// The duration of a kernel on the simulated machine. timeline.h computes when it starts.
#pragma once

#include <cstdint>

#include "device/profile.h"
#include "plan/step_plan.h"

namespace stepgate {

// Duration in nanoseconds, without noise. `floor` is the duration of the shortest kernel.
std::int64_t kernel_time(const DeviceProfile&, const LaunchKernel&, std::int64_t floor);

}  // namespace stepgate
