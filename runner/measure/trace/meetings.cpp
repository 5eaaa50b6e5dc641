// SPDX-License-Identifier: MIT
#include "measure/trace/meetings.h"

#include <algorithm>

namespace stepgate {

MeetingsOfRanks meetings_of(const Trace& trace) {
  MeetingsOfRanks meetings;
  for (const RankArrival& arrival : trace.arrivals) {
    const std::int64_t at = arrival.at.count();
    const auto [place, is_new] =
        meetings.try_emplace({arrival.step, arrival.operation},
                             MeetingOfRanks{.first = at, .last = at, .last_rank = arrival.rank});
    MeetingOfRanks& meeting = place->second;
    meeting.first = std::min(meeting.first, at);
    if (at <= meeting.last) continue;
    meeting.last = at;
    meeting.last_rank = arrival.rank;
  }
  return meetings;
}

std::optional<WaitForRank> wait_for_rank(const DeviceWork& work, const MeetingsOfRanks& meetings) {
  if (!work.collective) return std::nullopt;
  const auto met = meetings.find({work.step, work.operation});
  if (met == meetings.end()) return std::nullopt;
  const TraceTime until(std::min(met->second.last, work.end.count()));
  if (until <= work.begin) return std::nullopt;
  return WaitForRank{.until = until, .rank = met->second.last_rank};
}

}  // namespace stepgate
