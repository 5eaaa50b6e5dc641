// SPDX-License-Identifier: MIT
// Settings with which a gate times all workloads of a suite in the time that a comparison needs for
// a few.
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

// The default time limit of a gate, since a merge waits for it.
inline constexpr std::chrono::seconds most_timing_of_a_gate{240};
// Time limit for one gate of a self-test with its single workload. A gate of a suite has no more
// time per workload.
inline constexpr std::chrono::seconds most_timing_of_a_tried_gate{10};

// Returns the workloads with known differences first, since time may run out, then workloads of all
// scenarios alternately.
std::vector<std::string> in_order_of_suspicion(std::vector<std::string> workloads,
                                               const std::set<std::string>& differing);

// How many workloads are timed before the others. They are few, so a pair of launches takes
// seconds; 0 where all workloads together are few.
std::size_t workloads_ahead_of_a_gate(std::size_t workloads);

// Turns the request of a gate into one for kernels in traced steps, which are few.
void time_kernels(ComparisonRequest&);

// Turns the request of a comparison into that of a gate. No pair begins after `most_timing`, but
// every workload gets the fewest pairs that can decide it. As many pairs are launched at once as
// fit into device memory by the plans of both sides.
void time_as_a_gate(ComparisonRequest&, const ComparisonSettings&,
                    std::chrono::nanoseconds most_timing, std::span<const CountedPair>);

}  // namespace stepgate
