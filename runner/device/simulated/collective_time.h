// SPDX-License-Identifier: MIT
// The time that a collective takes on the simulated machine once all its ranks have arrived.
// timeline.h computes when they arrive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/profile.h"
#include "plan/step_plan.h"

namespace stepgate {

// Time in nanoseconds, without noise. If the profile has a table for this number of ranks, the time
// is interpolated in it. Otherwise it is scaled from the nearest number of ranks as for a ring.
// There the time of the smallest size is latency, which scales with the steps round the ring; the
// time beyond it scales with the bytes that a rank sends. A profile without a table gets
// `collective_time_over_pcie`.
std::int64_t collective_time(const DeviceProfile&, CollectiveKind, int ranks, std::int64_t bytes);

// Time in nanoseconds for a ring whose links are as fast as pinned copies. This is a guess, not a
// measurement.
std::int64_t collective_time_over_pcie(const DeviceProfile&, CollectiveKind, int ranks,
                                       std::int64_t bytes);

// Effect of a limit on the thread blocks of a collective. Source: two H200, 2026-11-26, NCCL
// 2.28.3, all-reduces of 100 MiB beside a backward pass. With 24, 16 and 8 thread blocks they took
// 11.0, 12.8 and 20.7 ms, and the kernels beside them took 1.40, 1.35 and 1.33 times as long. So
// bandwidth is proportional to the thread blocks where they are few. The multiprocessors that they
// hold hardly matter to a GEMM that wanted all of them. For PCIe this is a guess.
struct CtasOfCollectives {
  int taken = 0;         // number of thread blocks of a collective
  double bandwidth = 1;  // as a share of the bandwidth without a limit
};

// NCCL chooses 24 thread blocks for rings over NVLink from 1 MiB on (two H100, two H200), of which
// 15 would suffice. It chooses two over PCIe, where a profile has no collectives, and without peer
// access.
CtasOfCollectives ctas_of_collectives(const DeviceProfile&, const RanksPlan&);

// Whether the launch is a GEMM that leaves free as many multiprocessors as the thread blocks of a
// collective take.
bool leaves_room(const LaunchKernel&, const CtasOfCollectives&);

// Time in nanoseconds, without noise, with the links and the limits of rate and thread blocks that
// the plan's knobs set. A limit of rate is one of bus bandwidth as nccl-tests has it, and the time
// of an empty collective is added to that of the bytes. Nobody measured broadcasts: one takes the
// time of an all-gather that sends as many bytes over each link.
std::int64_t collective_time(const DeviceProfile&, const RanksPlan&, CollectiveKind,
                             std::int64_t bytes);

// Factors by which concurrent collectives and kernels slow each other down on so many ranks.
struct Contention {
  double kernel_stretch = CollectiveCosts{}.kernel_stretch;
  double collective_stretch = CollectiveCosts{}.collective_stretch;
};
Contention contention_of(const DeviceProfile&, int ranks);

// Time of a collective with concurrent kernels, where `alone` and `kernels` are the times that each
// takes without the other. The collective is slowed down for as long as the kernels run.
std::int64_t time_beside_kernels(std::int64_t alone, std::int64_t kernels, const Contention&);

// For each collective outside the compute stream, the total time of the compute kernels between it
// and the first operation that waits for it. That many run beside it, or fewer where it starts
// later or another collective runs first. Nanoseconds by operation, without noise; 0 for other
// operations.
std::vector<std::int64_t> kernels_beside_collectives(const StepPlan&, const DeviceProfile&);

// Describes the times of collectives that were not measured; empty if all were.
std::string what_is_guessed_of_collectives(const DeviceProfile&, const RanksPlan&);

}  // namespace stepgate
