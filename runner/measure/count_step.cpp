// SPDX-License-Identifier: MIT
#include "measure/count_step.h"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <memory>

#include "measure/time_split.h"
#include "measure/trace_metrics.h"
#include "measure/trace_rounds.h"
#include "plan/counted_metrics.h"
#include "plan/step_names.h"
#include "scenario/metric.h"
#include "support/one_cpu.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// A wrong number changes every loss that follows; a few tell as surely as many.
constexpr std::int64_t steps_of_losses = 4;
// Counts are the same in every step, or in every few; times only say where a step that is slower
// has grown.
constexpr std::int64_t most_steps_of_counts = 8;

// Of values by the plan: whether they are the trace's to confirm.
bool is_confirmed(const StepPlan& plan, const MetricRow& row) {
  return row.evidence <= Evidence::exact && counted(plan, row.metric) &&
         !trace_may_differ(plan, row.metric);
}

}  // namespace

StepCounts planned_counts(const StepPlan& plan) {
  StepCounts counts;
  for (const MetricRow& row : metric_table()) {
    if (const auto value = counted(plan, row.metric))
      counts.planned[std::string(row.name)] = *value;
  }
  for (const Operation& operation : plan.operations) {
    counts.operations[fmt::format("{}: {}", name_of(operation.phase), operation.name)] +=
        1.0 / static_cast<double>(operation.every);
  }
  return counts;
}

StepCounts counts_of(Device& device, const StepPlan& plan, const StepPlan& carried_out,
                     std::optional<std::uint64_t> cpu_draw) {
  StepCounts counts = planned_counts(plan);
  const std::unique_ptr<LoadedStep> loaded = device.load_into(only_slot, carried_out);
  std::optional<OneCpu> pinned;
  if (cpu_draw) pinned.emplace(*cpu_draw);
  for (const float loss : loaded->run({.steps = steps_of_losses}).losses)
    counts.losses.push_back(fmt::format("{:08x}", std::bit_cast<std::uint32_t>(loss)));
  counts.untraced = device.reason_against_tracing();
  if (!counts.untraced.empty()) return counts;
  const nanoseconds step_time = pilot_step_time(*loaded);
  const auto trace = trace_loaded(*loaded, carried_out, step_time,
                                  traced_steps({&carried_out, 1}, step_time, most_steps_of_counts));
  if (!trace) {
    counts.untraced = "the device recorded no trace";
    return counts;
  }
  const TracedStep step = summary_of(*trace, carried_out);
  for (const auto& [metric, value] : step.values) {
    if (is_confirmed(plan, row_of(metric))) counts.traced[std::string(row_of(metric).name)] = value;
  }
  for (int phase = 0; phase < phase_count; ++phase) {
    const double waits = step.phases[static_cast<std::size_t>(phase)].host_waits;
    if (waits > 0) counts.waits[std::string(name_of(static_cast<Phase>(phase)))] = waits;
  }
  for (const auto& [part, seconds] : named_parts(step.time))
    counts.time[std::string(part)] = seconds;
  return counts;
}

}  // namespace stepgate
