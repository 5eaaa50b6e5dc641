// SPDX-License-Identifier: MIT
// How a gate times all works of a suite in the time that a duel has for a few.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "duel/gate/judge_duel.h"
#include "duel/gate/judge_gate.h"
#include "duel/launches/duel.h"

namespace stepgate {

// Nobody who waits for a merge waits longer, unless told to.
inline constexpr std::chrono::seconds most_timing_of_a_gate{240};
// One gate of a self-test has as long for its one work: a gate of a suite has no more for each of
// its works.
inline constexpr std::chrono::seconds most_timing_of_a_tried_gate{10};

// Puts works that are known to differ first, as time may be short, then some of all scenarios.
std::vector<std::string> in_order_of_suspicion(std::vector<std::string> works,
                                               const std::set<std::string>& differing);

// How many of so many works go ahead of the others: few enough for a pair of launches to take
// seconds, and none where all are few.
std::size_t works_ahead_of_a_gate(std::size_t works);

// Makes a gate's request of a duel's: no pair is begun after so much time, but every work gets the
// fewest pairs that can decide it. As many pairs are launched at once as the device has memory for,
// by the plans of both sides.
void time_as_a_gate(DuelRequest&, const DuelSettings&, std::chrono::nanoseconds most_timing,
                    std::span<const CountedPair>);

}  // namespace stepgate
