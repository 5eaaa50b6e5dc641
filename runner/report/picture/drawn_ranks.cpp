// SPDX-License-Identifier: MIT
#include "report/picture/drawn_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/require.h"
#include "report/trace/trace_rows.h"

namespace stepgate {
namespace {

constexpr const char* clocks_differ = "each on a clock of its own";

DrawnRanks chosen_ranks(std::span<const Trace> all, const WorstRanks& worst) {
  std::map<int, std::string> why;  // by rank
  why[all.front().rank] = "";
  why[all.back().rank] = "";
  if (const auto exposed = worst.metrics.find(Metric::exposed_comm_us);
      exposed != worst.metrics.end())
    why[exposed->second] = ", whose collectives are hidden least";
  why[worst.shown] = ", which the report is of";
  DrawnRanks drawn;
  std::vector<std::string> words;
  for (const auto& [rank, reason] : why) {
    const auto trace = std::ranges::find(all, rank, &Trace::rank);
    if (trace == all.end()) continue;
    drawn.traces.push_back(&*trace);
    words.push_back(fmt::format("{}{}", rank, reason));
  }
  drawn.note = fmt::format("of {} ranks {}", all.size(), fmt::join(words, "; "));
  return drawn;
}

}  // namespace

DrawnRanks drawn_ranks(std::span<const Trace> all, const WorstRanks& worst) {
  require(!all.empty(), "a variant has a timeline");
  DrawnRanks drawn;
  if (all.size() > most_drawn_ranks) {
    drawn = chosen_ranks(all, worst);
  } else {
    for (const Trace& trace : all) drawn.traces.push_back(&trace);
  }
  if (drawn.traces.size() > 1 && !std::ranges::all_of(all, shares_its_clock))
    drawn.note += drawn.note.empty() ? clocks_differ : fmt::format("; {}", clocks_differ);
  return drawn;
}

}  // namespace stepgate
