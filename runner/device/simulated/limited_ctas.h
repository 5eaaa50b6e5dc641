// SPDX-License-Identifier: MIT
// What a limit of the thread blocks of a collective changes on the simulated machine. A guess that
// nobody has measured: what a collective takes beyond its latency goes with how many channels it
// lacks of those that NCCL would take, and so does what it takes away from kernels beside it.
#pragma once

#include <cstdint>

#include "device/profile.h"
#include "plan/step_plan.h"

namespace stepgate {

// Of the channels that NCCL would choose. Over NVLink these are 24, as on two H100 from 1 MiB on;
// over PCIe, of which a profile has no collectives, and without peer access two.
double share_of_channels(const DeviceProfile&, const RanksPlan&);

// Of a collective that takes so long with all of them, in nanoseconds.
std::int64_t time_with_channels(std::int64_t nanoseconds, std::int64_t latency_nanoseconds,
                                double share);

// So many times as long as alone runs a kernel under a collective that stretches it so with all of
// them.
double stretch_with_channels(double stretch, double share);

}  // namespace stepgate
