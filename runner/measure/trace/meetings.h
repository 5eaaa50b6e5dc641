// SPDX-License-Identifier: MIT
// The arrival times of the ranks at each collective of a trace. communication.h computes metrics
// from them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "device/trace.h"

namespace stepgate {

struct MeetingOfRanks {
  std::int64_t first = 0;  // arrival of the first rank, in nanoseconds of the trace's clock
  std::int64_t last = 0;   // arrival of the last rank, when communication begins
  int last_rank = 0;
};
using MeetingsOfRanks =
    std::map<std::pair<std::int64_t, int>, MeetingOfRanks>;  // by step and operation

// Returns an empty map if the arrivals are unknown.
MeetingsOfRanks meetings_of(const Trace&);

struct WaitForRank {
  TraceTime until{0};  // end of the wait, counted from the begin of the work
  int rank = 0;
};
// Returns the wait of a collective that started before its last rank arrived; nullopt for other
// work.
std::optional<WaitForRank> wait_for_rank(const DeviceWork&, const MeetingsOfRanks&);

}  // namespace stepgate
