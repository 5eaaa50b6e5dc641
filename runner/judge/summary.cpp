// SPDX-License-Identifier: MIT
// Adding up the segments of a variant.
#include "judge/summary.h"

#include "stats/quantile.h"
#include "support/seconds.h"

namespace stepgate {
namespace {

VariantSummary summary_of(const StepPlan& plan, int variant, const Measurement& measurement) {
  double steps = 0;
  double elapsed = 0;
  double host_busy = 0;
  bool host_known = true;
  double cycles = 0;
  bool clock_known = true;
  std::vector<double> step_times;
  for (const Round& round : measurement.rounds) {
    for (const Segment& segment : round.segments) {
      if (segment.variant != variant) continue;
      steps += static_cast<double>(segment.steps);
      elapsed += seconds(segment.elapsed);
      host_known = host_known && segment.host_busy;
      host_busy += seconds(segment.host_busy.value_or(std::chrono::nanoseconds(0)));
      clock_known = clock_known && segment.sm_clock_hertz;
      cycles += seconds(segment.elapsed) * segment.sm_clock_hertz.value_or(0);
      for (const auto time : segment.step_times) step_times.push_back(seconds(time));
    }
  }
  VariantSummary summary;
  summary.name = plan.variant;
  summary.allocator_simulation = plan.allocator_simulation;
  if (elapsed > 0) {
    summary.step_seconds_mean = elapsed / steps;
    summary.samples_per_second = mean_batch_size(plan) * steps / elapsed;
    if (host_known) summary.host_share = host_busy / elapsed;
    if (clock_known) {
      summary.sm_clock_hertz = cycles / elapsed;
      summary.cycles_per_step = cycles / steps;
    }
  }
  if (!step_times.empty()) {
    summary.step_seconds_p50 = nearest_rank(step_times, 0.50);
    summary.step_seconds_p95 = nearest_rank(step_times, 0.95);
  }
  return summary;
}

}  // namespace

std::vector<VariantSummary> summaries_of(const Scenario& scenario,
                                         std::span<const PlannedStep> plans,
                                         const Measurement& measurement) {
  std::vector<VariantSummary> summaries;
  for (const PlannedStep& plan : plans) {
    summaries.push_back(summary_of(plan, static_cast<int>(summaries.size()), measurement));
    summaries.back().peak_bytes =
        static_cast<std::int64_t>(plan.facts().count(Metric::peak_live).value_or(0));
  }
  for (const std::vector<Expectation>* sentences : {&scenario.regime, &scenario.expect}) {
    for (const Expectation& sentence : *sentences) {
      for (const MetricOf& metric : metrics_in(sentence)) {
        if (metric.stored || row_of(metric.metric).evidence >= Evidence::timed) continue;
        const std::size_t variant = plan_named(plans, metric.variant);
        const auto count = is_none_by_plan(plans[variant], metric.metric)
                               ? std::optional(0.0)
                               : plans[variant].facts().count(metric.metric);
        if (count) summaries[variant].counts[metric.metric] = *count;
      }
    }
  }
  return summaries;
}

}  // namespace stepgate
