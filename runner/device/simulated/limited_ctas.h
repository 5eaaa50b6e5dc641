// SPDX-License-Identifier: MIT
// What a limit of the thread blocks of a collective changes on the simulated machine. A guess that
// nobody has measured: what a collective takes beyond its latency goes with how many channels it
// lacks of those that NCCL would take, and so does what it takes away from kernels beside it.
#pragma once

#include <cstdint>
#include <optional>

namespace stepgate {

// Of NCCL's rings over NVLink, on two H100, from 1 MiB on.
inline constexpr int channels_by_choice = 24;

// Of the channels that NCCL would choose.
double share_of_channels(std::optional<int> max_ctas);

// Of a collective that takes so long with as many as NCCL chooses, in nanoseconds.
std::int64_t time_with_ctas(std::int64_t nanoseconds, std::int64_t latency_nanoseconds,
                            std::optional<int> max_ctas);

// So many times as long as alone runs a kernel under a collective.
double stretch_with_ctas(double stretch, std::optional<int> max_ctas);

}  // namespace stepgate
