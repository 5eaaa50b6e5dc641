// SPDX-License-Identifier: MIT
// What is ordered after what while the host issues a plan's operations, step after step: vector
// clocks over the host and the streams (Mattern 1989), as race detectors use them. Who touches
// which bytes is access.h's.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

// The streams by StreamName, then the host, then the branch of a graph: what of it is captured on
// the side stream is ordered with the graph, and not with what else that stream has.
constexpr int order_threads = stream_count + 2;
constexpr int host_thread = stream_count;
constexpr int branch_thread = stream_count + 1;

// When an operation was issued: the time of the thread that it runs on.
struct Issued {
  int thread = host_thread;
  std::int64_t time = 0;
};

// The host's bounded run-ahead is not taken for an order: it is the runner's, not the scenario's.
class IssueOrder {
 public:
  explicit IssueOrder(const StepPlan&);

  // The next operation of the host, for the step that it acts for. All that it waits for is over
  // when it begins.
  Issued issue(const Operation&, std::int64_t step);

  // An operation that was issued is over before whatever the thread does from now on.
  bool is_over(const Issued& earlier, int thread) const {
    return clocks_[static_cast<std::size_t>(thread)][static_cast<std::size_t>(earlier.thread)] >=
           earlier.time;
  }

 private:
  using Clock = std::array<std::int64_t, order_threads>;

  static void join(Clock& clock, const Clock& other);
  void join_every_stream(Clock&);
  void wait_on_host(const Operation&, std::int64_t step);
  void enqueue(int stream);
  Clock& event_at(int event, std::int64_t step);
  Clock& host() { return clocks_[host_thread]; }

  const StepPlan& plan_;
  std::array<Clock, order_threads> clocks_{};
  std::vector<std::vector<Clock>> events_;
};

// So many steps that every slot is used again after every other and every rare operation has
// happened twice, but not more than a plan is worth.
std::int64_t steps_until_repeated(const StepPlan&);

}  // namespace stepgate
