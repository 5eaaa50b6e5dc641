// SPDX-License-Identifier: MIT
// The order of operations while the host issues a plan's operations, step after step: vector clocks
// over the host and the streams (Mattern 1989), as race detectors use them. access.h says which
// operations touch which bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

// The logical time of an operation: that of the thread that runs it. Threads are the plan's
// streams, the host, and a graph's branch for each stream. Work captured beside the compute stream
// is ordered with the graph, and not with other work of its stream.
struct Issued {
  int thread = 0;
  std::int64_t time = 0;
};

// Vector clocks of the threads. The host's bounded run-ahead does not count as an order, since the
// runner causes it and not the scenario.
class IssueOrder {
 public:
  explicit IssueOrder(const StepPlan&);

  // Issues the host's next operation, for the step that it acts for, after everything that it waits
  // for.
  Issued issue(const Operation&, std::int64_t step);

  int threads() const { return static_cast<int>(clocks_.size()); }
  int host_thread() const { return static_cast<int>(plan_.streams.size()); }

  // Whether an issued operation is complete before anything that the thread does from now on.
  bool is_over(const Issued& earlier, int thread) const {
    return clocks_[static_cast<std::size_t>(thread)][static_cast<std::size_t>(earlier.thread)] >=
           earlier.time;
  }

 private:
  using Clock = std::vector<std::int64_t>;  // by thread

  static void join(Clock& clock, const Clock& other);
  int thread_of(const Operation&) const;
  void join_every_stream(Clock&);
  void wait_on_host(const Operation&, std::int64_t step);
  void enqueue(int thread);
  Clock& event_at(int event, std::int64_t step);
  Clock& clock(int thread) { return clocks_[static_cast<std::size_t>(thread)]; }
  Clock& host() { return clock(host_thread()); }

  const StepPlan& plan_;
  std::vector<Clock> clocks_;               // by thread
  std::vector<std::vector<Clock>> events_;  // by event, then slot
};

// The number of steps after which every slot was reused and every periodic operation happened
// twice, limited to what a plan is worth.
std::int64_t steps_until_repeated(const StepPlan&);

}  // namespace stepgate
