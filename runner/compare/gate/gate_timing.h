// SPDX-License-Identifier: MIT
// How a gate times all workloads of a suite in the time that a comparison has for a few.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compare/gate/judge_comparison.h"
#include "compare/gate/judge_gate.h"
#include "compare/launches/comparison.h"

namespace stepgate {

// Nobody who waits for a merge waits longer, unless told to.
inline constexpr std::chrono::seconds most_timing_of_a_gate{240};
// One gate of a self-test has as long for its one workload: a gate of a suite has no more for each
// of its workloads.
inline constexpr std::chrono::seconds most_timing_of_a_tried_gate{10};

// Puts workloads that are known to differ first, as time may be short, then some of all scenarios.
std::vector<std::string> in_order_of_suspicion(std::vector<std::string> workloads,
                                               const std::set<std::string>& differing);

// How many of so many workloads go ahead of the others: few enough for a pair of launches to take
// seconds, and none where all are few.
std::size_t workloads_ahead_of_a_gate(std::size_t workloads);

// Makes a gate's request of a comparison's: no pair is begun after so much time, but every workload
// gets the fewest pairs that can decide it. As many pairs are launched at once as the device has
// memory for, by the plans of both sides.
void time_as_a_gate(ComparisonRequest&, const ComparisonSettings&,
                    std::chrono::nanoseconds most_timing, std::span<const CountedPair>);

}  // namespace stepgate
