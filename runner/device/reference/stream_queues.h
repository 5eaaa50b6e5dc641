// SPDX-License-Identifier: MIT
// The device side of the reference device: the work that was issued to each stream and is not yet
// done, and the streams that may run next. This code deals with order only, not with buffers or
// kernels.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "plan/stream.h"

namespace stepgate {

// The completion mark of one issued operation; `done` is set once it has run. An event holds the
// mark of its last record.
struct Mark {
  bool done = false;
};
using SharedMark = std::shared_ptr<Mark>;

// The number of operations that had been issued to each stream at some moment.
using IssuedCounts = std::vector<std::int64_t>;

// The streams of a rank, first in, first out, identified by index.
class StreamQueues {
 public:
  // The streams outlive this object.
  explicit StreamQueues(const std::vector<Stream>&);

  // Appends work to a stream. It runs once `after` (may be null), all earlier work of the stream,
  // and all earlier work of streams that synchronise implicitly with it are done. Returns its mark.
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
    IssuedCounts needed;  // number of operations of each stream that must be done before
  };

  bool may_run(const Entry&) const;

  const std::vector<Stream>& streams_;
  std::vector<std::deque<Entry>> queues_;
  IssuedCounts issued_;
  IssuedCounts done_;
};

}  // namespace stepgate
