// SPDX-License-Identifier: MIT
// The ranks of one loaded step on the simulated machine, each on an equal GPU. Each rank with host
// work of its own has a timeline, and all other ranks share one. The timelines go through the
// operations together, so that a collective begins when the last rank has arrived. Noise is the
// same for all ranks: only the plan makes one arrive later than another.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "device/simulated/timeline.h"

namespace stepgate {

struct RankKind {
  int rank = 0;
  std::vector<int> alike;  // other ranks that do the same
};

class RankTimelines {
 public:
  RankTimelines(const StepPlan&, const DeviceProfile&, const LoadDraw&, Nanoseconds start);

  void issue_step(std::int64_t step, const StepNoise&);
  void start_at(Nanoseconds now);
  void queue_after(Nanoseconds end);
  void drain();

  // One timeline for each kind of rank, ordered by rank.
  const std::deque<Timeline>& all() const { return timelines_; }

  // The largest time among the ranks.
  Nanoseconds host_now() const;
  Nanoseconds compute_end() const;

  void start_recording(std::int64_t first_step, std::size_t operations);
  // Returns the traces of all timelines, in their order.
  std::vector<Trace> take_recording(std::int64_t steps);

 private:
  void note_arrivals(std::size_t operation, std::int64_t step,
                     const std::vector<Nanoseconds>& came);

  std::vector<RankKind> ranks_;  // by timeline
  std::deque<StepPlan> plans_;   // by timeline; empty for a single rank
  std::deque<Timeline> timelines_;
  std::string guessed_;  // guessed times of collectives, in words
  bool recording_ = false;
  std::size_t last_operation_ = 0;
  std::vector<RankArrival> arrivals_;
};

}  // namespace stepgate
