// SPDX-License-Identifier: MIT
// How a limit of the thread blocks of a collective acts on the simulated machine, as two H200 have
// shown it. Source: 2026-11-26, NCCL 2.28.3, all-reduces of 100 MiB beside a backward pass. With
// 24, 16 and 8 thread blocks they took 11.0, 12.8 and 20.7 ms, and the kernels under them ran 1.40,
// 1.35 and 1.33 times as long. So bytes a second go with the thread blocks where there are few, and
// how many multiprocessors they hold hardly matters to a GEMM that wanted all. Over PCIe it is a
// guess.
#pragma once

#include <cstdint>

#include "device/profile.h"
#include "plan/step_plan.h"

namespace stepgate {

struct CtasOfCollectives {
  int taken = 0;         // as many as a collective has
  double bandwidth = 1;  // of what it has without a limit
};

// NCCL's own choice for its rings is 24 over NVLink, on two H100 and two H200, from 1 MiB on, of
// which 15 would do; over PCIe, of which a profile has no collectives, and without peer access two.
CtasOfCollectives ctas_of_collectives(const DeviceProfile&, const RanksPlan&);

// Time of a collective that takes so long without a limit, in nanoseconds.
std::int64_t time_with_ctas(std::int64_t nanoseconds, std::int64_t latency_nanoseconds,
                            const CtasOfCollectives&);

// Whether it is a GEMM that leaves a collective all multiprocessors that its thread blocks take.
bool leaves_room(const LaunchKernel&, const CtasOfCollectives&);

}  // namespace stepgate
