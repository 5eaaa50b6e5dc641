// SPDX-License-Identifier: MIT
// What a limit of the thread blocks of a collective changes on the simulated machine, as two H200
// have shown it (2026-11-26, NCCL 2.28.3, all-reduces of 100 MiB beside a backward pass): with 24,
// 16 and 8 of them 11.0, 12.8 and 20.7 ms, and 1.40, 1.35 and 1.33 times as long run the kernels
// under them. So bytes a second go with the thread blocks where there are few, and how many
// multiprocessors they hold hardly matters to a GEMM that wanted all.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/step_plan.h"

namespace stepgate {

// As many move as many bytes a second as more of them.
inline constexpr int ctas_that_fill_a_link = 15;
// Of NCCL's rings over NVLink, on two H100 and two H200, from 1 MiB on.
inline constexpr int ctas_by_choice = 24;

// Of a collective that takes so long with as many as NCCL chooses, in nanoseconds.
std::int64_t time_with_ctas(std::int64_t nanoseconds, std::int64_t latency_nanoseconds,
                            std::optional<int> max_ctas);

// Whether it is a GEMM that leaves a collective all multiprocessors that its thread blocks take.
bool leaves_room_for_ctas(const LaunchKernel&, std::optional<int> max_ctas);

}  // namespace stepgate
