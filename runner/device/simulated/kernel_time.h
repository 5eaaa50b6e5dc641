// SPDX-License-Identifier: MIT
// The duration of a kernel on the simulated machine. timeline.h computes when it starts.
#pragma once

#include <cstdint>

#include "device/profile.h"
#include "plan/step_plan.h"

namespace stepgate {

// Duration in nanoseconds, without noise. `floor` is the duration of the shortest kernel.
std::int64_t kernel_time(const DeviceProfile&, const LaunchKernel&, std::int64_t floor);

// The part of that duration, `time`, in which the device pauses before the kernel, which a trace
// shows as idle. `captured`: in a graph.
std::int64_t pause_before(const LaunchKernel&, std::int64_t floor, std::int64_t time,
                          bool captured);

}  // namespace stepgate
