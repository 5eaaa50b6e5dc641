// SPDX-License-Identifier: MIT
// Where the ranks of the reference device meet: what a collective computes once the last of them
// has come to it. Knows numbers, and nothing of streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/reference/stream_queues.h"
#include "plan/step_plan.h"

namespace stepgate {

// One collective of all ranks.
class RankMeeting {
 public:
  explicit RankMeeting(int ranks) : come_(static_cast<std::size_t>(ranks)) {}

  // The rank has come, with what it reads and writes there. With the last one all have their
  // results: sums in double, in the order of the ranks, rounded once. Throws DeviceError where it
  // has come for another collective than the others.
  void come(int rank, const Collective&, const std::byte* from, std::byte* to);

  // Done once all have come.
  const SharedMark& over() const { return over_; }

 private:
  struct Come {
    const Collective* collective = nullptr;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
  };

  void refuse_if_others(int rank) const;
  void carry_out() const;

  std::vector<Come> come_;  // by rank
  int missing_ = static_cast<int>(come_.size());
  SharedMark over_ = std::make_shared<Mark>();
};

// All of them: those of one communicator are told apart by how many a rank has issued before.
class RankMeetings {
 public:
  explicit RankMeetings(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  std::shared_ptr<RankMeeting> next(int rank, int communicator);

 private:
  struct OfCommunicator {
    std::vector<std::shared_ptr<RankMeeting>> meetings;  // that not all ranks have issued
    std::vector<std::int64_t> next;                      // by rank, counted from the first one
    std::int64_t first = 0;                              // number of meetings that are forgotten
  };

  std::size_t ranks_;
  std::vector<OfCommunicator> communicators_;
};

}  // namespace stepgate
