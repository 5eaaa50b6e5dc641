// SPDX-License-Identifier: MIT
#include "measure/trace/trace_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/require.h"
#include "base/text/number_words.h"
#include "base/text/units.h"
#include "base/time_of_scope.h"
#include "measure/planned_subject.h"
#include "measure/schedule.h"
#include "measure/trace/conformance.h"
#include "measure/trace/trace_metrics.h"
#include "measure/trace/worst_ranks.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// A trace has as many steps as take this time, but at least `fewest_long_steps`.
constexpr nanoseconds time_to_trace = std::chrono::milliseconds(10);
constexpr std::int64_t fewest_long_steps = 4;
constexpr std::int64_t most_short_steps = 20;
constexpr std::int64_t fewest_rounds = 2;
constexpr std::int64_t most_traced_steps = 200;
constexpr nanoseconds time_to_settle = std::chrono::milliseconds(5);
constexpr nanoseconds time_to_settle_of_a_loader = std::chrono::milliseconds(40);
constexpr int patience = 5;

class Tracing {
 public:
  Tracing(Device& device, std::span<const PlannedStep> plans, const TraceRequest& request)
      : device_(device),
        plans_(plans),
        request_(request),
        random_(request.seed),
        step_times_(plans.size()) {}

  Traced run() {
    const nanoseconds start = device_.now();
    const auto most = std::chrono::duration_cast<nanoseconds>(
        std::chrono::duration<double>(request_.max_seconds));
    const auto goes_on = [&] {
      if (request_.nothing_open) {
        const TimeOfScope judging(time_of(WallPart::trace_counts));
        if (request_.nothing_open(traced_)) return false;
      }
      const bool enough = std::ssize(traced_.rounds) >= request_.enough_rounds;
      return traced_.wall_time < (enough ? most : patience * most);
    };
    do {
      run_round();
      traced_.wall_time = device_.now() - start;
    } while (traced_.unavailable.empty() && std::ssize(traced_.rounds) < request_.rounds &&
             goes_on());
    return std::move(traced_);
  }

 private:
  void run_round() {
    const auto variants = static_cast<int>(plans_.size());
    const std::vector<int> order = permutation(variants, random_);
    TracedRound round;
    round.variants.resize(plans_.size());
    round.ranks.resize(plans_.size());
    std::vector<std::vector<Trace>> timelines(traced_.not_drawn.empty() ? plans_.size() : 0);
    bytes_kept_ = 0;
    traced_.timelines.clear();  // those of the round before
    for (const int variant : order) {
      const auto index = static_cast<std::size_t>(variant);
      std::vector<Trace> traces = traces_of(index);
      if (traces.empty()) {
        const WallTimes spent = traced_.wall_times;
        traced_ = {};
        traced_.wall_times = spent;
        traced_.unavailable =
            "the device recorded no trace of variant '" + plans_[index]->variant + "'";
        return;
      }
      const TimeOfScope counting(time_of(WallPart::trace_counts));
      for (Trace& trace : traces) {
        round.ranks[index].push_back(summary_of(trace, plans_[index]));
        keep(counted_part(std::move(trace)), index, timelines);
      }
    }
    traced_.rounds.push_back(std::move(round));
    traced_.timelines = std::move(timelines);
    const TimeOfScope counting(time_of(WallPart::trace_counts));
    take_worst_ranks(traced_);
  }

  // Keeps the trace among those of its round, unless they take more than there is room for.
  void keep(Trace trace, std::size_t variant, std::vector<std::vector<Trace>>& timelines) {
    if (!traced_.not_drawn.empty()) return;
    bytes_kept_ += bytes_kept(trace);
    if (bytes_kept_ <= request_.timeline_bytes)
      return timelines[variant].push_back(std::move(trace));
    traced_.not_drawn = fmt::format(
        "no timelines are kept: the traces of {} take more than {}; trace fewer or smaller steps",
        counted_in_words(std::ssize(plans_), "variant"), bytes_text(request_.timeline_bytes));
    timelines.clear();
  }

  nanoseconds& time_of(WallPart part) { return traced_.wall_times[part]; }

  std::unique_ptr<LoadedStep> loaded(std::size_t variant) {
    const TimeOfScope loading(time_of(WallPart::trace_loads));
    return device_.load_into(only_slot, plans_[variant]);
  }

  void unload(std::unique_ptr<LoadedStep> step) {
    const TimeOfScope unloading(time_of(WallPart::trace_loads));
    step.reset();
  }

  nanoseconds time_of_a_step(LoadedStep& step) {
    const TimeOfScope running(time_of(WallPart::trace_steps));
    return pilot_step_time(step);
  }

  std::vector<Trace> traces_of(std::size_t variant) {
    std::unique_ptr<LoadedStep> step = loaded(variant);
    std::optional<nanoseconds>& step_time = step_times_[variant];
    const bool is_first = !step_time;
    if (is_first) step_time = time_of_a_step(*step);
    if (is_first && request_.tells_driver_used) {
      unload(std::move(step));
      step = loaded(variant);
    }
    // Uses the longest known step time; in the first round, some are not yet known.
    traced_.steps = traced_steps(plans_, **std::ranges::max_element(step_times_), fewest_rounds);
    std::vector<Trace> traces;
    {
      const TimeOfScope running(time_of(WallPart::trace_steps));
      traces = trace_loaded(*step, plans_[variant], *step_time, traced_.steps);
    }
    for (Trace& trace : traces) {
      if (is_first && !request_.tells_driver_used) trace.memory.driver_bytes.reset();
      time_of(WallPart::trace_records) += trace.collected_in;
      time_of(WallPart::trace_steps) -= trace.collected_in;
    }
    unload(std::move(step));
    return traces;
  }

  Device& device_;
  std::span<const PlannedStep> plans_;
  const TraceRequest& request_;
  Random random_;
  std::vector<std::optional<nanoseconds>> step_times_;  // by variant; set after its first load
  Traced traced_;
  std::int64_t bytes_kept_ = 0;  // of the traces of this round
};

}  // namespace

std::int64_t bytes_kept(const Trace& trace) {
  constexpr std::size_t of_names = 32;  // of a call or a kernel, where they are allocated
  return static_cast<std::int64_t>(
      sizeof trace + trace.spans.size() * sizeof(HostSpan) +
      trace.calls.size() * (sizeof(HostCall) + of_names) +
      trace.work.size() * (sizeof(DeviceWork) + of_names) +
      trace.memory_changes.size() * sizeof(MemoryChange) +
      trace.unsteady.size() * sizeof(Unsteady) +
      (trace.page_events ? trace.page_events->size() * sizeof(PageEvent) : 0));
}

std::int64_t traced_steps(std::span<const PlannedStep> plans, nanoseconds step_time,
                          std::int64_t rounds) {
  std::set<std::int64_t> periods;
  for (const PlannedStep& plan : plans) {
    for (const PeriodicWork& work : plan.facts().periodic) periods.insert(work.every);
  }
  std::int64_t common = 1;
  for (const std::int64_t period : periods) {
    if (period > most_traced_steps) break;  // all later ones are longer
    const std::int64_t both = std::lcm(common, period);
    if (both <= most_traced_steps) common = both;
  }
  for (const PlannedStep& plan : plans)
    common = whole_turns(common, loader_turn(plan->loader), most_traced_steps);
  const std::int64_t fewest = std::clamp<std::int64_t>(
      time_to_trace / step_time / rounds, fewest_long_steps / rounds, most_short_steps / rounds);
  return (fewest + common - 1) / common * common;
}

std::int64_t steps_until_steady(const PlannedStep& plan, nanoseconds step_time) {
  const Subject subject = subject_of(plan);
  const nanoseconds settle = plan->loader.depth > 0 && plan->loader.wait_us > 0
                                 ? time_to_settle_of_a_loader
                                 : time_to_settle;
  const std::int64_t patient = std::min(settle / step_time, most_traced_steps);
  const std::int64_t period = common_period(subject, most_traced_steps).value_or(1);
  const auto& allocator = plan->allocator_simulation;
  const std::int64_t settled = allocator ? allocator->settled_after.value_or(0) : 0;
  return std::max({wash_out_steps(subject, step_time), patient, period, settled});
}

nanoseconds pilot_step_time(LoadedStep& step) {
  const StepResult result = step.run({.wash_out_steps = 1, .steps = 1});
  return std::max(result.elapsed.value_or(nanoseconds(0)), nanoseconds(1));
}

std::vector<Trace> trace_loaded(LoadedStep& step, const PlannedStep& plan, nanoseconds step_time,
                                std::int64_t steps) {
  const std::int64_t closing = 1 + plan.facts().prefetch_depth;
  std::vector<Trace> traces =
      take_traces(step.run({.wash_out_steps = steps_until_steady(plan, step_time),
                            .steps = steps + closing,
                            .trace = true}));
  for (Trace& trace : traces) trace.closing_steps = std::min(closing, trace.steps - 1);
  return traces;
}

Traced trace_rounds(Device& device, std::span<const PlannedStep> plans,
                    const TraceRequest& request) {
  require(!plans.empty(), "there is something to trace");
  require(request.rounds >= 1, "at least one round is traced");
  Traced traced;
  traced.unavailable = device.reason_against_tracing();
  if (!traced.unavailable.empty()) return traced;
  traced = Tracing(device, plans, request).run();
  traced.not_as_planned = reason_against_conformance(plans, traced).value_or("");
  return traced;
}

}  // namespace stepgate
