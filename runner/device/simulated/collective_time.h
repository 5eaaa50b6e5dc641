// SPDX-License-Identifier: MIT
// How long a collective takes on the simulated machine once all of its ranks have come to it. When
// that is is timeline.h's.
#pragma once

#include <cstdint>
#include <string>

#include "device/profile.h"
#include "plan/step_plan.h"

namespace stepgate {

// In nanoseconds, without noise. On as many ranks as the profile has a table of by that; on others
// by the nearest one, as a ring has it: the time of the smallest size is latency, which goes with
// the steps round the ring, and what a size takes beyond it goes with the bytes that a rank sends.
// Of a profile without a table `collective_time_over_pcie`.
std::int64_t collective_time(const DeviceProfile&, CollectiveKind, int ranks, std::int64_t bytes);

// A ring whose links are as fast as pinned copies. Nobody measured it.
std::int64_t collective_time_over_pcie(const DeviceProfile&, CollectiveKind, int ranks,
                                       std::int64_t bytes);

// What of that was not measured on so many ranks, in words; empty where all was.
std::string what_is_guessed_of_collectives(const DeviceProfile&, int ranks);

}  // namespace stepgate
