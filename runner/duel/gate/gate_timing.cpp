// SPDX-License-Identifier: MIT
#include "duel/gate/gate_timing.h"

#include <algorithm>

namespace stepgate {
namespace {

// Segments of a quarter of a duel's, a step and its wash-out before the first that counts, since
// the works before it have warmed both processes up, and one superblock a pair until a work turns
// out to need more.
constexpr std::chrono::nanoseconds segment_of_a_gate = std::chrono::milliseconds(5);
constexpr std::int64_t first_superblocks_of_a_gate = 1;
constexpr std::size_t works_ahead = 16;

}  // namespace

std::vector<std::string> in_order_of_suspicion(std::vector<std::string> works,
                                               const std::set<std::string>& differing) {
  const auto others =
      std::stable_partition(works.begin(), works.end(),
                            [&](const std::string& work) { return differing.contains(work); });
  const auto stride = std::max<std::ptrdiff_t>(
      1, std::distance(others, works.end()) / static_cast<std::ptrdiff_t>(works_ahead));
  std::ptrdiff_t place = 0;
  std::stable_partition(others, works.end(),
                        [&](const std::string&) { return place++ % stride == 0; });
  return works;
}

std::size_t works_ahead_of_a_gate(std::size_t works) {
  return works > 2 * works_ahead ? works_ahead : 0;
}

void time_as_a_gate(DuelRequest& request, const DuelSettings& settings,
                    std::chrono::nanoseconds most_timing) {
  request.segment = segment_of_a_gate;
  request.warm_up = std::chrono::nanoseconds(0);
  request.first_superblocks = first_superblocks_of_a_gate;
  request.fewest_pairs =
      fewest_pairs_to_hold(settings) + (settings.works_ahead > 0 ? pairs_ahead : 0);
  // What decides nothing is no answer to a merge, however long it takes.
  request.budget.reset();
  request.patience = most_timing;
  request.watch_time = time_to_watch(most_timing, request.works.size());
}

}  // namespace stepgate
