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

// A ring whose links are as fast as pinned copies. This is a guess, not a measurement.
std::int64_t collective_time_over_pcie(const DeviceProfile&, CollectiveKind, int ranks,
                                       std::int64_t bytes);

// How a limit of the thread blocks of a collective acts, as two H200 have shown it. Source:
// 2026-11-26, NCCL 2.28.3, all-reduces of 100 MiB beside a backward pass. With 24, 16 and 8 thread
// blocks they took 11.0, 12.8 and 20.7 ms, and the kernels under them ran 1.40, 1.35 and 1.33 times
// as long. So bytes a second go with the thread blocks where there are few, and how many
// multiprocessors they hold hardly matters to a GEMM that wanted all. Over PCIe it is a guess.
struct CtasOfCollectives {
  int taken = 0;         // as many as a collective has
  double bandwidth = 1;  // of what it has without a limit
};

// NCCL chooses 24 thread blocks for rings over NVLink from 1 MiB on (two H100, two H200); 15 would
// suffice. It chooses two over PCIe, where a profile has no collectives, and without peer access.
CtasOfCollectives ctas_of_collectives(const DeviceProfile&, const RanksPlan&);

// Whether it is a GEMM that leaves a collective all multiprocessors that its thread blocks take.
bool leaves_room(const LaunchKernel&, const CtasOfCollectives&);

// As above, in nanoseconds, as the plan's knobs have it.
std::int64_t collective_time(const DeviceProfile&, const RanksPlan&, CollectiveKind,
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
