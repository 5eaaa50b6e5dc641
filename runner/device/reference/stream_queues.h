// SPDX-License-Identifier: MIT
// The device side of the reference device: what was issued to each stream and is not yet done, and
// what may run next. Knows order, and nothing of buffers or kernels.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

// One issue of an operation; done once it has run. An event holds the mark of its last record.
struct Mark {
  bool done = false;
};
using SharedMark = std::shared_ptr<Mark>;

// How much had been issued to each stream at some moment.
using IssuedCounts = std::array<std::int64_t, stream_count>;

// Streams are FIFO. `compute` is a blocking stream: it and `legacy` wait for each other's earlier
// operations. `side` is ordered with neither.
class StreamQueues {
 public:
  // Appends work, which runs once everything before it in its stream, what the legacy stream's
  // rule adds and `after` (may be null) are done. Returns its mark.
  SharedMark issue(StreamName, std::function<void()> work, SharedMark after = nullptr);

  // Streams whose next operation may run now.
  std::vector<StreamName> ready() const;

  // Runs the next operation of a ready stream.
  void run_next(StreamName);

  const IssuedCounts& issued() const { return issued_; }
  bool idle() const { return done_ == issued_; }

  // Whether the first `count` operations of the stream are done.
  bool reached(StreamName, std::int64_t count) const;

 private:
  struct Entry {
    std::function<void()> work;
    SharedMark after;
    SharedMark mark;
    IssuedCounts needed{};  // operations of each stream that must be done before
  };

  bool may_run(const Entry&) const;

  std::array<std::deque<Entry>, stream_count> queues_;
  IssuedCounts issued_{};
  IssuedCounts done_{};
};

}  // namespace stepgate
