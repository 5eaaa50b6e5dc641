// SPDX-License-Identifier: MIT
#include "measure/trace_rounds.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "measure/schedule.h"
#include "measure/trace_metrics.h"
#include "support/random.h"
#include "support/require.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

constexpr std::int64_t fewest_traced_steps = 20;
constexpr std::int64_t most_traced_steps = 200;
constexpr nanoseconds time_to_settle = std::chrono::milliseconds(20);
constexpr nanoseconds time_to_settle_of_a_loader = std::chrono::milliseconds(100);
constexpr int patience = 5;
constexpr std::int64_t first_steps = 8;  // in the first round, to know how long a step takes

// Untraced steps of this variant before the traced ones. A host that is hardly faster than its
// device, or a loader that is, fills the queue by a fraction of a step a step.
std::int64_t steps_until_steady(const StepPlan& plan, nanoseconds step_time) {
  const nanoseconds settle = plan.loader.depth > 0 && plan.loader.wait_nanoseconds > 0
                                 ? time_to_settle_of_a_loader
                                 : time_to_settle;
  const std::int64_t patient = std::min(settle / step_time, most_traced_steps);
  const std::int64_t period = common_period({&plan, 1}, most_traced_steps);
  return std::max({wash_out_steps({&plan, 1}, {&step_time, 1}), patient,
                   static_cast<std::int64_t>(plan.run_ahead_steps), period});
}

class Tracing {
 public:
  Tracing(Device& device, std::span<const StepPlan> plans, const TraceRequest& request)
      : device_(device), plans_(plans), request_(request), random_(request.seed) {}

  Traced run() {
    const nanoseconds start = request_.clock();
    const auto most = std::chrono::duration_cast<nanoseconds>(
        std::chrono::duration<double>(request_.max_seconds));
    const auto goes_on = [&] {
      if (request_.nothing_open && request_.nothing_open(traced_)) return false;
      const bool enough = std::ssize(traced_.rounds) >= request_.enough_rounds;
      return traced_.wall_time < (enough ? most : patience * most);
    };
    traced_.steps = traced_steps(plans_);
    step_times_.resize(plans_.size());
    do {
      run_round();
      traced_.wall_time = request_.clock() - start;
    } while (traced_.unavailable.empty() && std::ssize(traced_.rounds) < request_.rounds &&
             goes_on());
    return std::move(traced_);
  }

 private:
  void run_round() {
    const auto variants = static_cast<int>(plans_.size());
    const std::vector<int> order = pass_orders(RoundOrder::random, variants, random_).front();
    TracedRound round;
    round.variants.resize(plans_.size());
    traced_.timelines.resize(plans_.size());
    for (const int variant : order) {
      const auto index = static_cast<std::size_t>(variant);
      std::optional<Trace> trace = trace_of(index);
      if (!trace) {
        traced_ = {};
        traced_.unavailable =
            "the device recorded no trace of variant '" + plans_[index].variant + "'";
        return;
      }
      round.variants[index] = summary_of(*trace, plans_[index]);
      traced_.timelines[index] = *std::move(trace);
    }
    traced_.rounds.push_back(std::move(round));
  }

  std::optional<Trace> trace_of(std::size_t variant) {
    const StepPlan& plan = plans_[variant];
    // Into memory of its own: what a slot keeps for others would count as reserved.
    const std::unique_ptr<LoadedStep> step = device_.load(plan);
    std::optional<nanoseconds>& step_time = step_times_[variant];
    if (!step_time) {
      const StepResult first = step->run({.steps = first_steps});
      // A device that does not know the time may be as fast as it likes.
      step_time = std::max(first.elapsed.value_or(nanoseconds(0)) / first.steps, nanoseconds(1));
    }
    StepResult traced = step->run({.wash_out_steps = steps_until_steady(plan, *step_time),
                                   .steps = traced_.steps,
                                   .trace = true});
    return std::move(traced.trace);
  }

  Device& device_;
  std::span<const StepPlan> plans_;
  const TraceRequest& request_;
  Random random_;
  std::vector<std::optional<nanoseconds>> step_times_;  // by variant, once it has run
  Traced traced_;
};

}  // namespace

std::int64_t traced_steps(std::span<const StepPlan> plans) {
  std::set<std::int64_t> periods;
  for (const StepPlan& plan : plans) {
    for (const Operation& operation : plan.operations) periods.insert(operation.every);
  }
  std::int64_t common = 1;
  for (const std::int64_t period : periods) {
    if (period > most_traced_steps) break;  // of a set: so are all that follow
    const std::int64_t both = std::lcm(common, period);
    if (both <= most_traced_steps) common = both;
  }
  return (fewest_traced_steps + common - 1) / common * common;
}

Traced trace_rounds(Device& device, std::span<const StepPlan> plans, const TraceRequest& request) {
  require(!plans.empty(), "there is something to trace");
  require(request.rounds >= 1, "at least one round is traced");
  Traced traced;
  traced.unavailable = device.reason_against_tracing();
  if (!traced.unavailable.empty()) return traced;
  return Tracing(device, plans, request).run();
}

}  // namespace stepgate
