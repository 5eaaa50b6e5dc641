// SPDX-License-Identifier: MIT
// When the ranks came to each collective of a trace. communication.h draws the conclusions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "device/trace.h"

namespace stepgate {

struct MeetingOfRanks {
  std::int64_t first = 0;  // in nanoseconds of the trace's clock
  std::int64_t last = 0;   // from then on it communicates; until then others wait
  int last_rank = 0;
};
using MeetingsOfRanks =
    std::map<std::pair<std::int64_t, int>, MeetingOfRanks>;  // by step and operation

// Empty if not known.
MeetingsOfRanks meetings_of(const Trace&);

struct WaitForRank {
  TraceTime until{0};  // from the begin of the work
  int rank = 0;
};
// The wait of a collective that was there before its last rank; nothing for any other.
std::optional<WaitForRank> wait_for_rank(const DeviceWork&, const MeetingsOfRanks&);

}  // namespace stepgate
