// SPDX-License-Identifier: MIT
// The ranks of one loaded step on the simulated machine, each on a GPU like all the others. Ranks
// that do the same are one timeline: those that have host work of their own, and one for all
// others. They go through the operations together, so that a collective begins when the last of
// them has come to it. Noise is the same for all of them: what makes one come later than another is
// its plan alone.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "device/simulated/timeline.h"

namespace stepgate {

struct RankKind {
  int rank = 0;
  std::vector<int> alike;  // others that do the same
};

class RankTimelines {
 public:
  RankTimelines(const StepPlan&, const DeviceProfile&, const LoadDraw&, Nanoseconds start);

  void issue_step(std::int64_t step, const StepNoise&);
  void start_at(Nanoseconds now);
  void queue_after(Nanoseconds end);
  void drain();

  // One for each kind of rank, by rank.
  const std::deque<Timeline>& all() const { return timelines_; }

  // Times of the rank that is furthest.
  Nanoseconds host_now() const;
  Nanoseconds compute_end() const;

  void start_recording(std::int64_t first_step, std::size_t operations);
  // Recordings of every timeline, in their order.
  std::vector<Trace> take_recording(std::int64_t steps);

 private:
  void note_arrivals(std::size_t operation, std::int64_t step,
                     const std::vector<Nanoseconds>& came);

  std::vector<RankKind> ranks_;  // by timeline
  std::deque<StepPlan> plans_;   // likewise; none where there is one rank
  std::deque<Timeline> timelines_;
  std::string guessed_;  // of the times of collectives, in words
  bool recording_ = false;
  std::size_t last_operation_ = 0;
  std::vector<RankArrival> arrivals_;
};

}  // namespace stepgate
