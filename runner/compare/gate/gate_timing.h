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

// The default time limit: a merge waits for the gate.
inline constexpr std::chrono::seconds most_timing_of_a_gate{240};
// One gate of a self-test has as long for its one workload: a gate of a suite has no more for each
// of its workloads.
inline constexpr std::chrono::seconds most_timing_of_a_tried_gate{10};

// Puts workloads that are known to differ first, as time may be short, then some of all scenarios.
std::vector<std::string> in_order_of_suspicion(std::vector<std::string> workloads,
                                               const std::set<std::string>& differing);

// How many workloads are timed before the others. They are few, so a pair of launches takes
// seconds; 0 where all workloads together are few.
std::size_t workloads_ahead_of_a_gate(std::size_t workloads);

// Turns the request of a comparison into that of a gate. No pair begins after `most_timing`, but
// every workload gets the fewest pairs that can decide it. As many pairs are launched at once as
// fit into device memory by the plans of both sides.
void time_as_a_gate(ComparisonRequest&, const ComparisonSettings&,
                    std::chrono::nanoseconds most_timing, std::span<const CountedPair>);

}  // namespace stepgate
