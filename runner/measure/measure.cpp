// SPDX-License-Identifier: MIT
// Warm-up and rounds.
#include "measure/measure.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "measure/loss_ledger.h"
#include "measure/schedule.h"
#include "stats/moments.h"
#include "support/require.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

constexpr std::int64_t pilot_steps = 8;
// The warm-up ends when over so many blocks the step time has changed by less than this share, or
// by less than its own noise explains.
constexpr std::int64_t steady_blocks = 8;
constexpr double steady_change = 0.005;
constexpr std::int64_t most_warm_up_blocks = 100;
constexpr double most_warm_up_seconds = 20;
constexpr double most_warm_up_share = 1.0 / 3;  // of the budget

double seconds(nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

class Run {
 public:
  Run(Device& device, std::span<const StepPlan> plans, const MeasureRequest& request)
      : device_(device), plans_(plans), request_(request), start_(request.clock()), ledger_(plans) {
    result_.device = device.identity();
    result_.scenario = plans.front().scenario;
    result_.scenario_fingerprint = request.scenario_fingerprint;
    result_.seed = request.seed;
    for (const StepPlan& plan : plans) {
      result_.variants.push_back({.name = plan.variant, .batch_size = plan.batch_size});
      loaded_.push_back(device.load(plan));
    }
    step_times_.resize(plans.size());
  }

  Measurement measure() {
    if (run_block(pilot_steps)) {
      warm_up();
      report_progress();
      run_rounds();
    }
    result_.wall_time = spent();
    return std::move(result_);
  }

 private:
  nanoseconds spent() const { return request_.clock() - start_; }

  void report_progress() const {
    if (!request_.progress) return;
    request_.progress(
        {.rounds = static_cast<std::int64_t>(result_.rounds.size()), .spent = spent()});
  }

  StepResult run(std::size_t variant, const Observe& observe) {
    StepResult result = loaded_[variant]->run(observe);
    require(result.steps == observe.steps, "a device runs the steps that it was asked for");
    ledger_.add(static_cast<int>(variant), result);
    if (result.elapsed) {
      // The wash-out has no time of its own; it costs what the scored steps cost.
      result_.device_time +=
          *result.elapsed * (observe.wash_out_steps + observe.steps) / observe.steps;
      step_times_[variant] = *result.elapsed / observe.steps;
    }
    return result;
  }

  bool losses_agree() {
    result_.disagreement = ledger_.first_disagreement();
    return !result_.disagreement;
  }

  // Warm-up steps of every variant. False when there is nothing to go on for: the device has no
  // time, or the losses disagree.
  bool run_block(std::int64_t steps) {
    bool timed = true;
    for (std::size_t variant = 0; variant < plans_.size(); ++variant) {
      timed = run(variant, {.steps = steps}).elapsed.has_value() && timed;
    }
    result_.warmup_steps += steps;
    return losses_agree() && timed;
  }

  // The log of the geometric mean over variants of the last block's time a step.
  double log_step_time() const {
    double sum = 0;
    for (const nanoseconds time : step_times_) {
      sum += std::log(std::max(seconds(time), 1e-9));
    }
    return sum / static_cast<double>(step_times_.size());
  }

  void warm_up() {
    if (request_.knobs.warmup_steps) {
      const std::int64_t rest = *request_.knobs.warmup_steps - pilot_steps;
      if (rest > 0) run_block(rest);
      return;
    }
    const double cap =
        std::min(most_warm_up_seconds, most_warm_up_share * request_.knobs.max_seconds);
    std::vector<double> blocks;
    while (run_block(segment_steps(plans_, request_.knobs, step_times_))) {
      blocks.push_back(log_step_time());
      if (std::ssize(blocks) < steady_blocks) continue;
      const Trend trend = trend_of(std::span(blocks).last(steady_blocks));
      const double change = std::abs(trend.slope);
      if (change * steady_blocks < steady_change || change < 2 * trend.standard_error) return;
      result_.steady = std::ssize(blocks) < most_warm_up_blocks && seconds(spent()) < cap;
      if (!result_.steady) return;
    }
  }

  void run_rounds() {
    if (result_.disagreement) return;
    const std::int64_t steps = segment_steps(plans_, request_.knobs, step_times_);
    result_.wash_out_steps = wash_out_steps(plans_, step_times_);
    result_.environment_before = device_.read_environment();
    Random random(request_.seed);
    nanoseconds longest_round{0};
    while (std::ssize(result_.rounds) < request_.knobs.rounds) {
      if (!may_start(longest_round)) {
        result_.budget_spent = true;
        return;
      }
      const nanoseconds before = spent();
      run_round(round_order(request_.knobs.order, static_cast<int>(plans_.size()), random), steps);
      result_.rounds.back().environment_after = device_.read_environment();
      longest_round = std::max(longest_round, spent() - before);
      report_progress();
      if (!losses_agree() || request_.enough(result_)) return;
    }
  }

  bool may_start(nanoseconds longest_round) const {
    return std::ssize(result_.rounds) < request_.fewest_rounds ||
           seconds(spent() + longest_round) <= request_.knobs.max_seconds;
  }

  void run_round(const std::vector<int>& order, std::int64_t steps) {
    const Observe observe{.wash_out_steps = result_.wash_out_steps, .steps = steps};
    Round round;
    for (const int variant : order) {
      StepResult result = run(static_cast<std::size_t>(variant), observe);
      require(result.elapsed.has_value(), "a device that knew the time once knows it always");
      round.segments.push_back({.variant = variant,
                                .first_step = result.first_step + observe.wash_out_steps,
                                .steps = result.steps,
                                .elapsed = *result.elapsed,
                                .host_busy = result.host_busy,
                                .sm_clock_hertz = result.sm_clock_hertz,
                                .step_times = std::move(result.step_times)});
    }
    result_.rounds.push_back(std::move(round));
  }

  Device& device_;
  std::span<const StepPlan> plans_;
  const MeasureRequest& request_;
  nanoseconds start_;
  LossLedger ledger_;
  std::vector<std::unique_ptr<LoadedStep>> loaded_;
  std::vector<nanoseconds> step_times_;  // a step of each variant, when last run
  Measurement result_;
};

}  // namespace

Measurement measure(Device& device, std::span<const StepPlan> plans,
                    const MeasureRequest& request) {
  require(!plans.empty(), "there is something to measure");
  return Run(device, plans, request).measure();
}

}  // namespace stepgate
