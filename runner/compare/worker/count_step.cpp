// SPDX-License-Identifier: MIT
#include "compare/worker/count_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <memory>

#include "base/process/one_cpu.h"
#include "measure/planned_subject.h"
#include "measure/rounds/same_step.h"
#include "measure/schedule.h"
#include "measure/trace/time_breakdown.h"
#include "measure/trace/trace_metrics.h"
#include "measure/trace/trace_rounds.h"
#include "plan/compose/step_names.h"
#include "scenario/assertions/metric.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// A wrong number changes every later loss, so a few losses suffice. The second half of these steps
// gives the step time, after the first half has loaded what the step needs.
constexpr std::int64_t steps_of_losses = 4;

constexpr Observe first_half{.steps = steps_of_losses / 2, .gradients = true};
constexpr Observe second_half{.steps = steps_of_losses / 2};

void add_losses(const StepResult& result, std::vector<std::string>& losses) {
  for (const float loss : result.losses)
    losses.push_back(fmt::format("{:08x}", std::bit_cast<std::uint32_t>(loss)));
}

// Returns the step time if the device measures time, else nullopt.
std::optional<nanoseconds> run_for_losses(LoadedStep& step, const StepPlan& plan,
                                          StepCounts& counts) {
  const StepResult first = step.run(first_half);
  const StepResult second = step.run(second_half);
  const Precision precision{plan.dtype, plan.model.fp8 != ModelFp8::none};
  add_losses(first, counts.losses);
  add_losses(second, counts.losses);
  if (!plan.library_kernels.empty() || plan.attention_sums == AttentionSums::any)
    counts.loss_bound = loss_bound(precision, 0);
  for (std::size_t index = 0; index < first.gradients.size(); ++index)
    counts.gradients[plan.parameters[index].name] = first.gradients[index];
  if (!first.gradients.empty())
    counts.gradient_bound = gradient_bound(precision, ModelLaunches::others);
  if (!second.elapsed) return std::nullopt;
  return std::max(*second.elapsed / second_half.steps, nanoseconds(1));
}

// Number of steps before the first steps are repeated, since a faulty kernel may compute correctly
// only at first. The time limit is that of loading a step; a nightly soak runs longer.
constexpr std::int64_t steps_before_again = 100;
constexpr std::chrono::milliseconds most_before_again{30};

void begin_again(LoadedStep& step, const StepPlan& plan, nanoseconds step_time,
                 StepCounts& counts) {
  if (counts.gradients.empty()) return;
  step.run(
      {.steps = std::clamp<std::int64_t>(most_before_again / step_time, 1, steps_before_again)});
  if (!step.restart()) return;
  const StepResult again = step.run(first_half);
  GradientSketch whole;
  for (const GradientSketch& sketch : again.gradients) add_finite(whole, sketch);
  for (std::size_t index = 0; index < again.gradients.size(); ++index) {
    const std::string& name = plan.parameters[index].name;
    const GradientSketch& before = counts.gradients[name];
    if (!std::isfinite(before.squares)) continue;
    constexpr double beyond_all = 1e9;  // infinity cannot be written to the protocol
    const double difference =
        relative_difference(before, again.gradients[index], negligible_norm(whole, before));
    counts.begun_again[name] = std::isfinite(difference) ? difference : beyond_all;
  }
}

// Traces the step after periodic work has happened once, so that its leftovers exist. Where times
// are wanted, the queue must be as deep as it gets; counts do not depend on it.
std::optional<Trace> trace_of(LoadedStep& step, const PlannedStep& plan, nanoseconds step_time,
                              bool times) {
  const std::int64_t steps = traced_steps({&plan, 1}, step_time);
  if (times) {
    std::vector<Trace> traces = trace_loaded(step, plan, step_time, steps);
    if (traces.empty()) return std::nullopt;
    return std::move(traces.front());  // all ranks have the same counts
  }
  const Subject subject = subject_of(plan);
  const std::int64_t period = common_period(subject, steps).value_or(steps);
  const std::int64_t wash_out = std::max(wash_out_steps(subject, step_time), period);
  return step.run({.wash_out_steps = wash_out, .steps = steps, .trace = true}).trace;
}

// Returns whether a trace must confirm the plan's value of this metric.
bool is_confirmed(const PlanFacts& facts, Metric metric) {
  return row_of(metric).evidence <= Evidence::exact && facts.counts.contains(metric) &&
         !facts.may_differ.contains(metric);
}

}  // namespace

StepCounts planned_counts(const PlannedStep& plan) {
  StepCounts counts;
  for (const auto& [metric, value] : plan.facts().counts)
    counts.planned[std::string(row_of(metric).name)] = value;
  for (const Operation& operation : plan->operations) {
    counts.operations[fmt::format("{}: {}", name_of(operation.phase), operation.name)] +=
        1.0 / static_cast<double>(operation.every);
  }
  return counts;
}

StepCounts counts_of(Device& device, const PlannedStep& plan, const PlannedStep& carried_out,
                     const CountRequest& request) {
  StepCounts counts = planned_counts(plan);
  const std::unique_ptr<LoadedStep> loaded = device.load_into(only_slot, carried_out);
  std::optional<OneCpu> pinned;
  if (request.cpu_draw) pinned.emplace(*request.cpu_draw);
  const auto step_time = run_for_losses(*loaded, carried_out, counts);
  counts.untraced = device.reason_against_tracing();
  std::optional<Trace> trace;
  if (counts.untraced.empty()) {
    trace = trace_of(*loaded, carried_out, step_time.value_or(nanoseconds(1)), request.times);
    if (!trace) counts.untraced = "the device recorded no trace";
  }
  if (step_time) begin_again(*loaded, carried_out, *step_time, counts);
  if (!trace) return counts;
  const TracedStep step = summary_of(*trace, carried_out);
  for (const auto& [metric, value] : step.values) {
    if (is_confirmed(plan.facts(), metric)) counts.traced[std::string(row_of(metric).name)] = value;
  }
  for (int phase = 0; phase < phase_count; ++phase) {
    const double waits = step.phases[static_cast<std::size_t>(phase)].host_waits;
    if (waits > 0) counts.waits[std::string(name_of(static_cast<Phase>(phase)))] = waits;
  }
  if (!request.times) return counts;
  for (const auto& [part, seconds] : named_parts(step.time))
    counts.time[std::string(part)] = seconds;
  for (const auto& [kernel, work] : step.work) {
    if (!kernel.starts_with('(')) counts.kernels[kernel] = work.seconds;
  }
  return counts;
}

}  // namespace stepgate
