// SPDX-License-Identifier: MIT
// The device side of the reference device: what was issued to each stream and is not yet done, and
// what may run next. Knows order, and nothing of buffers or kernels.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "plan/stream.h"

namespace stepgate {

// One issue of an operation; done once it has run. An event holds the mark of its last record.
struct Mark {
  bool done = false;
};
using SharedMark = std::shared_ptr<Mark>;

// How much had been issued to each stream at some moment.
using IssuedCounts = std::vector<std::int64_t>;

// Streams are first in, first out, and known by their index.
class StreamQueues {
 public:
  // They outlive this.
  explicit StreamQueues(const std::vector<Stream>&);

  // Appends work, which runs once everything before it in its stream and in those that wait for
  // each other with it, and `after` (may be null) are done. Returns its mark.
  SharedMark issue(int stream, std::function<void()> work, SharedMark after = nullptr);

  // Streams whose next operation may run now.
  std::vector<int> ready() const;

  // Runs the next operation of a ready stream.
  void run_next(int stream);

  const IssuedCounts& issued() const { return issued_; }
  bool idle() const { return done_ == issued_; }

  // Whether the first `count` operations of the stream are done.
  bool reached(int stream, std::int64_t count) const;

 private:
  struct Entry {
    std::function<void()> work;
    SharedMark after;
    SharedMark mark;
    IssuedCounts needed;  // operations of each stream that must be done before
  };

  bool may_run(const Entry&) const;

  const std::vector<Stream>& streams_;
  std::vector<std::deque<Entry>> queues_;
  IssuedCounts issued_;
  IssuedCounts done_;
};

}  // namespace stepgate
