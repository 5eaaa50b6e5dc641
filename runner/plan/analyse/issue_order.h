// SPDX-License-Identifier: MIT
// The order of operations while the host issues a plan's operations, step after step: vector clocks
// over the host and the streams (Mattern 1989), as race detectors use them. access.h says which
// operations touch which bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

// When an operation was issued: the time of the thread that it runs on. Threads are the plan's
// streams, then the host, then a graph's branch for each stream: what of a graph is captured beside
// the compute stream is ordered with the graph, and not with what else its stream has.
struct Issued {
  int thread = 0;
  std::int64_t time = 0;
};

// The host's bounded run-ahead is not taken for an order: the runner bounds it, not the scenario.
class IssueOrder {
 public:
  explicit IssueOrder(const StepPlan&);

  // The next operation of the host, for the step that it acts for. All that it waits for is over
  // when it begins.
  Issued issue(const Operation&, std::int64_t step);

  int threads() const { return static_cast<int>(clocks_.size()); }
  int host_thread() const { return static_cast<int>(plan_.streams.size()); }

  // An operation that was issued is over before whatever the thread does from now on.
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

// So many steps that every slot is used again after every other and every rare operation has
// happened twice, but not more than a plan is worth.
std::int64_t steps_until_repeated(const StepPlan&);

}  // namespace stepgate
