// SPDX-License-Identifier: MIT
#include "report/picture/drawn_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "support/require.h"

namespace stepgate {
DrawnRanks drawn_ranks(std::span<const Trace> all, const WorstRanks& worst) {
  require(!all.empty(), "a variant has a timeline");
  DrawnRanks drawn;
  if (all.size() <= most_drawn_ranks) {
    for (const Trace& trace : all) drawn.traces.push_back(&trace);
    return drawn;
  }
  std::map<int, std::string> why;  // by rank
  why[all.front().rank] = "";
  why[all.back().rank] = "";
  if (const auto exposed = worst.metrics.find(Metric::exposed_comm_us);
      exposed != worst.metrics.end())
    why[exposed->second] = ", whose collectives are hidden least";
  why[worst.shown] = ", which the report is of";
  std::vector<std::string> words;
  for (const auto& [rank, reason] : why) {
    const auto trace = std::ranges::find(all, rank, &Trace::rank);
    if (trace == all.end()) continue;
    drawn.traces.push_back(&*trace);
    words.push_back(fmt::format("{}{}", rank, reason));
  }
  drawn.left_out = fmt::format("of {} ranks {}", all.size(), fmt::join(words, "; "));
  return drawn;
}

}  // namespace stepgate
