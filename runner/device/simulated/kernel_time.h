// SPDX-License-Identifier: MIT
// How long a kernel runs on the simulated machine. timeline.h says when it runs.
#pragma once

#include <cstdint>

#include "device/profile.h"
#include "plan/step_plan.h"

namespace stepgate {

// In nanoseconds, without noise. `floor`: what the shortest kernel takes.
std::int64_t kernel_time(const DeviceProfile&, const LaunchKernel&, std::int64_t floor);

}  // namespace stepgate
