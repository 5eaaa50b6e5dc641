// SPDX-License-Identifier: MIT
#include "line/trace/trace_planned.h"

#include <algorithm>

#include "base/time_of_scope.h"
#include "judge/decide_by_rounds.h"
#include "line/fit_to_device.h"
#include "line/trace/calibrate_planned.h"
#include "measure/planned_subject.h"
#include "measure/trace/trace_rounds.h"

namespace stepgate {
namespace {

// Number of additional rounds while a traced assertion is undecided. The fewest rounds decide it
// only if all of them agree.
constexpr std::int64_t spare_rounds = 8;
// Number of rounds for checking that counts are reproducible.
constexpr std::int64_t rounds_of_counts = 2;
constexpr double most_seconds = 2;

bool asks_driver_used(const Scenario& scenario) {
  const auto asks = [](const Expectation& assertion) {
    const std::vector<MetricOf> metrics = metrics_in(assertion);
    return std::ranges::find(metrics, Metric::driver_used, &MetricOf::metric) != metrics.end();
  };
  return std::ranges::any_of(scenario.expect, asks) || std::ranges::any_of(scenario.regime, asks);
}

TraceRequest request_for(std::int64_t rounds, std::int64_t enough, std::uint64_t seed) {
  return {.rounds = rounds, .enough_rounds = enough, .max_seconds = most_seconds, .seed = seed};
}

}  // namespace

Traced trace_planned(Device& device, const LineArguments& arguments, const Planned& planned,
                     const JudgeSettings& settings, std::uint64_t seed, Timelines timelines) {
  Traced result;
  if (is_planned_only(planned.scenario)) return result;
  result.unavailable = device.reason_against_tracing();
  if (!result.unavailable.empty()) return result;
  device.begin_scenario();
  std::optional<Calibrated> found;
  std::vector<PlannedStep> found_plans;
  std::chrono::nanoseconds calibration{0};
  if (planned.scenario.calibrate) {
    const TimeOfScope calibrating(calibration);
    found = calibrate_planned(device, arguments, planned, seed);
    if (!found->is_kept) {
      found_plans = plans_on(device.identity(),
                             with_knob(planned, arguments, found->knob, found->value), seed);
    }
  }
  const std::vector<PlannedStep>& plans = found_plans.empty() ? planned.plans : found_plans;
  const std::int64_t fewest = fewest_traced_rounds(planned.scenario, settings);
  const std::int64_t spare = fewest > rounds_of_counts ? spare_rounds : 0;
  TraceRequest request = request_for(fewest + spare, fewest, seed_of(planned.scenario, seed));
  request.tells_driver_used = asks_driver_used(planned.scenario);
  request.nothing_open = [&](const Traced& so_far) {
    return std::ssize(so_far.rounds) >= fewest_traced_rounds_to_hold(planned.scenario, settings) &&
           traced_rounds_decide(planned.scenario, subjects_of(plans), so_far, settings);
  };
  result = trace_rounds(device, plans, request);
  result.calibrated = found;
  result.wall_times[WallPart::calibration] = calibration;
  if (timelines == Timelines::judged) {
    if (result.not_as_planned.empty()) result.timelines.clear();
    result.not_drawn.clear();
  }
  return result;
}

}  // namespace stepgate
