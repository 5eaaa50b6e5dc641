// SPDX-License-Identifier: MIT
// Rendezvous of the ranks of the reference device: a collective is computed once the last rank has
// arrived. This code deals with numbers only, not with streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/reference/stream_queues.h"
#include "plan/step_plan.h"

namespace stepgate {

// One collective, in which all ranks take part.
class RankMeeting {
 public:
  explicit RankMeeting(int ranks) : come_(static_cast<std::size_t>(ranks)) {}

  // Records that the rank has arrived, with the memory that it reads and writes. At the last
  // arrival all ranks get their results: sums in double, in the order of the ranks, rounded once.
  // Throws DeviceError if the rank arrives with another collective than the others.
  void come(int rank, const Collective&, const std::byte* from, std::byte* to);

  // The mark is done once all ranks have arrived.
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

// All collectives. A collective is identified by its communicator and by the number of collectives
// that the rank has issued on it before.
class RankMeetings {
 public:
  explicit RankMeetings(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  std::shared_ptr<RankMeeting> next(int rank, int communicator);

 private:
  struct OfCommunicator {
    std::vector<std::shared_ptr<RankMeeting>> meetings;  // those that not all ranks have issued
    std::vector<std::int64_t> next;                      // by rank, counted from the first one
    std::int64_t first = 0;                              // number of removed meetings
  };

  std::size_t ranks_;
  std::vector<OfCommunicator> communicators_;
};

}  // namespace stepgate
