// SPDX-License-Identifier: MIT
// How long a collective takes on the simulated machine once all of its ranks have come to it.
// timeline.h says when that is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/profile.h"
#include "plan/step_plan.h"

namespace stepgate {

// In nanoseconds, without noise. A count of ranks that the profile has a table of goes by that,
// others by the nearest one, as a ring has it. The time of the smallest size is latency, which goes
// with the steps round the ring. What a size takes beyond it goes with the bytes that a rank sends.
// A profile without a table gets `collective_time_over_pcie`.
std::int64_t collective_time(const DeviceProfile&, CollectiveKind, int ranks, std::int64_t bytes);

// A ring whose links are as fast as pinned copies. Nobody measured it.
std::int64_t collective_time_over_pcie(const DeviceProfile&, CollectiveKind, int ranks,
                                       std::int64_t bytes);

// Factors by which collectives and kernels beside each other stretch each other on so many ranks.
struct Contention {
  double kernel_stretch = CollectiveCosts{}.kernel_stretch;
  double collective_stretch = CollectiveCosts{}.collective_stretch;
};
Contention contention_of(const DeviceProfile&, int ranks);

// Time of a collective that alone takes so long and has kernels beside it that alone take so long:
// it is stretched as long as they run.
std::int64_t time_beside_kernels(std::int64_t alone, std::int64_t kernels, const Contention&);

// By operation, what kernels of the compute stream alone take in all that stand between a
// collective of another stream and the first one that waits for it: as many are beside it, or fewer
// where it has begun later or another collective is before it. 0 for all else. Without noise.
std::vector<std::int64_t> kernels_beside_collectives(const StepPlan&, const DeviceProfile&);

// Names the times that were not measured, in words; empty where all were.
std::string what_is_guessed_of_collectives(const DeviceProfile&, const RanksPlan&);

}  // namespace stepgate
