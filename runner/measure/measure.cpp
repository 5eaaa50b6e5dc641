// SPDX-License-Identifier: MIT
// Warm-up and rounds.
#include "measure/measure.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <utility>

#include "measure/loss_ledger.h"
#include "measure/pilot.h"
#include "measure/schedule.h"
#include "stats/moments.h"
#include "support/require.h"
#include "support/seconds.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

constexpr std::int64_t pilot_steps = 8;
// The warm-up ends when over so many blocks the step time has changed by less than this share, or
// by less than its own noise explains.
constexpr std::int64_t steady_blocks = 8;
constexpr std::int64_t warm_up_segments = 4;  // a block of the warm-up is so many segments long
constexpr double steady_change = 0.005;
constexpr std::int64_t most_warm_up_blocks = 100;
constexpr double most_warm_up_seconds = 20;
constexpr double most_warm_up_share = 1.0 / 3;  // of the budget

class Run {
 public:
  Run(Device& device, std::span<const StepPlan> plans, const MeasureRequest& request)
      : device_(device),
        plans_(plans),
        request_(request),
        start_(request.clock()),
        random_(request.seed),
        loaded_(plans.size()),
        step_times_(plans.size()) {
    result_.device = device.identity();
    result_.scenario = plans.front().scenario;
    result_.scenario_fingerprint = request.scenario_fingerprint;
    result_.seed = request.seed;
    for (const StepPlan& plan : plans) {
      result_.variants.push_back({.name = plan.variant,
                                  .batch_size = mean_batch_size(plan),
                                  .libraries = device.libraries_for(plan)});
    }
  }

  Measurement measure() {
    load(slot_rotations(variants(), random_).front());
    if (run_block(pilot_steps)) {
      warm_up();
      if (losses_agree()) choose_schedule();
      result_.device_time_before_rounds = result_.device_time;
      result_.wall_time_before_rounds = spent();
      report_progress();
      if (losses_agree() && fits_the_budget()) run_rounds();
    }
    result_.wall_time = spent();
    return std::move(result_);
  }

 private:
  nanoseconds spent() const { return request_.clock() - start_; }
  int variants() const { return static_cast<int>(plans_.size()); }

  void report_progress() const {
    if (!request_.progress) return;
    request_.progress({.rounds = static_cast<std::int64_t>(result_.rounds.size()),
                       .spent = spent(),
                       .expected = result_.expected});
  }

  // Every variant into its slot, in the order of the slots, when all have left. How long it took.
  nanoseconds load(const std::vector<int>& slots) {
    const nanoseconds before = spent();
    for (std::unique_ptr<LoadedStep>& step : loaded_) step.reset();
    slots_ = slots;
    for (int slot = 0; slot < variants(); ++slot) {
      const auto place = std::find(slots.begin(), slots.end(), slot);
      const auto variant = static_cast<std::size_t>(place - slots.begin());
      loaded_[variant] = device_.load_into(slot, plans_[variant]);
      note_choices(variant);
    }
    ledger_ = LossLedger(plans_);
    return spent() - before;
  }

  void note_choices(std::size_t variant) {
    std::vector<KernelChoice>& known = result_.variants[variant].choices;
    for (KernelChoice& choice : loaded_[variant]->choices()) {
      if (std::find(known.begin(), known.end(), choice) == known.end())
        known.push_back(std::move(choice));
    }
  }

  StepResult run(std::size_t variant, const Observe& observe) {
    StepResult result = loaded_[variant]->run(observe);
    require(result.steps == observe.steps, "a device runs the steps that it was asked for");
    ledger_.add(static_cast<int>(variant), result);
    if (result.elapsed) {
      // The wash-out has no time of its own; it costs what the scored steps cost. In this order a
      // long warm-up does not overflow.
      result_.device_time +=
          *result.elapsed + *result.elapsed / observe.steps * observe.wash_out_steps;
      step_times_[variant] = *result.elapsed / observe.steps;
    }
    return result;
  }

  bool losses_agree() {
    if (!result_.disagreement) result_.disagreement = ledger_.first_disagreement();
    return !result_.disagreement;
  }

  // Steps of every variant that are not scored. False when there is nothing to go on for: the
  // device has no time, or the losses disagree.
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
    while (run_block(warm_up_segments * segment_steps(plans_, request_.knobs, step_times_))) {
      blocks.push_back(log_step_time());
      if (std::ssize(blocks) < steady_blocks) continue;
      const Trend trend = trend_of(std::span(blocks).last(steady_blocks));
      const double change = std::abs(trend.slope);
      if (change * steady_blocks < steady_change || change < 2 * trend.standard_error) return;
      result_.steady = std::ssize(blocks) < most_warm_up_blocks && seconds(spent()) < cap;
      if (!result_.steady) return;
    }
  }

  // One segment of every variant.
  std::vector<Segment> run_order(const std::vector<int>& order, std::int64_t steps) {
    const Observe observe{.wash_out_steps = result_.wash_out_steps, .steps = steps};
    std::vector<Segment> segments;
    for (const int variant : order) {
      StepResult result = run(static_cast<std::size_t>(variant), observe);
      require(result.elapsed.has_value(), "a device that knew the time once knows it always");
      segments.push_back({.variant = variant,
                          .slot = slots_[static_cast<std::size_t>(variant)],
                          .first_step = result.first_step + observe.wash_out_steps,
                          .steps = result.steps,
                          .elapsed = *result.elapsed,
                          .host_busy = result.host_busy,
                          .sm_clock_hertz = result.sm_clock_hertz,
                          .step_times = std::move(result.step_times)});
    }
    return segments;
  }

  // An order and its mirror.
  std::vector<double> log_times_of_pilot(std::int64_t steps) {
    std::vector<double> log_times(plans_.size(), 0);
    std::vector<int> order = pass_orders(request_.knobs.order, variants(), random_).front();
    for (int half = 0; half < 2; ++half) {
      for (const Segment& segment : run_order(order, steps)) {
        const double step_seconds = seconds(segment.elapsed) / static_cast<double>(segment.steps);
        log_times[static_cast<std::size_t>(segment.variant)] +=
            0.5 * std::log(std::max(step_seconds, 1e-9));
      }
      std::reverse(order.begin(), order.end());
    }
    return log_times;
  }

  // Wash-out, segments and passes from the step times and a pilot, and what a round then costs.
  void choose_schedule() {
    // The first load made contents and started libraries; those of the rounds do not.
    const nanoseconds loading = load(slot_rotations(variants(), random_).front());
    settle(pass_orders(request_.knobs.order, variants(), random_).front(), pilot_steps);
    result_.wash_out_steps = wash_out_steps(plans_, step_times_);
    result_.pilot =
        choose_segment(segment_steps(plans_, request_.knobs, step_times_), request_.knobs.steps,
                       [this](std::int64_t steps) { return log_times_of_pilot(steps); });
    const std::int64_t steps = result_.pilot.segment_steps;
    result_.settle_steps = request_.knobs.warmup_steps.value_or(steps);
    nanoseconds one_step{0};  // of every variant
    for (const nanoseconds time : step_times_) one_step += time;
    const nanoseconds order = (result_.wash_out_steps + steps) * one_step;
    const nanoseconds load = loading + result_.settle_steps * one_step;
    result_.pilot.orders_per_pass =
        orders_per_pass(seconds(load) / std::max(seconds(order), 1e-9), result_.pilot.deviation);
    result_.expected.round = variants() * (load + result_.pilot.orders_per_pass * order);
    result_.expected.deviation = round_deviation(result_.pilot, variants());
    const double left = std::max(request_.knobs.max_seconds - seconds(spent()), 0.0);
    result_.expected.fewest_rounds = request_.fewest_rounds;
    result_.expected.most_rounds =
        std::min(request_.knobs.rounds,
                 static_cast<std::int64_t>(left / std::max(seconds(result_.expected.round), 1e-9)));
  }

  bool fits_the_budget() {
    result_.budget_refused = result_.expected.most_rounds < result_.expected.fewest_rounds;
    return !result_.budget_refused;
  }

  void run_rounds() {
    result_.environment_before = device_.read_environment();
    nanoseconds longest_round{0};
    while (std::ssize(result_.rounds) < request_.knobs.rounds) {
      if (seconds(spent() + longest_round) > request_.knobs.max_seconds) {
        result_.budget_spent = true;
        return;
      }
      const nanoseconds before = spent();
      if (!run_round()) return;
      result_.rounds.back().environment_after = device_.read_environment();
      longest_round = std::max(longest_round, spent() - before);
      report_progress();
      if (request_.enough(result_)) return;
    }
  }

  // Steps after a load that are not scored.
  void settle(const std::vector<int>& order, std::int64_t steps) {
    for (const int variant : order) {
      if (steps > 0) run(static_cast<std::size_t>(variant), {.steps = steps});
    }
  }

  void run_pass(std::vector<int> order, Round& round) {
    settle(order, result_.settle_steps);
    for (std::int64_t done = 0; done < result_.pilot.orders_per_pass; ++done) {
      std::vector<Segment> segments = run_order(order, result_.pilot.segment_steps);
      std::move(segments.begin(), segments.end(), std::back_inserter(round.segments));
      std::reverse(order.begin(), order.end());
    }
  }

  // False when the losses of a pass disagree: then the round is not one.
  bool run_round() {
    Round round;
    const auto slots = slot_rotations(variants(), random_);
    const auto orders = pass_orders(request_.knobs.order, variants(), random_);
    for (std::size_t pass = 0; pass < slots.size(); ++pass) {
      load(slots[pass]);
      run_pass(orders[pass], round);
      if (!losses_agree()) return false;
    }
    result_.rounds.push_back(std::move(round));
    return true;
  }

  Device& device_;
  std::span<const StepPlan> plans_;
  const MeasureRequest& request_;
  nanoseconds start_;
  Random random_;
  LossLedger ledger_{{}};  // of the current load
  std::vector<std::unique_ptr<LoadedStep>> loaded_;
  std::vector<int> slots_;               // of each variant
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
