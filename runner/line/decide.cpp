// SPDX-License-Identifier: MIT
#include "line/decide.h"

#include <algorithm>

#include "base/interruption.h"
#include "base/time_of_scope.h"
#include "measure/planned_subject.h"

namespace stepgate {
namespace {

JudgeSettings settings_of(const Planned& planned, JudgeSettings settings) {
  settings.baseline = planned.baseline;
  return settings;
}

Measurement by_plans_alone(const Planned& planned, DeviceIdentity device) {
  Measurement none;
  none.planned_only = true;
  none.device = std::move(device);
  none.scenario_fingerprint = planned.scenario.fingerprint;
  return none;
}

// Returns why a knob with [calibrate] has no value, in words.
std::optional<std::string> calibration_failure(const Planned& planned) {
  if (planned.traced && planned.traced->calibrated) {
    const std::string& failure = planned.traced->calibrated->failure;
    return failure.empty() ? std::nullopt : std::optional("cannot be calibrated: " + failure);
  }
  if (!lacks_a_value(planned.scenario)) return std::nullopt;
  return "cannot be calibrated: " + (planned.traced ? planned.traced->unavailable : "not traced");
}

}  // namespace

Verdict judge_one(const Planned& planned, const Measurement& measurement, JudgeSettings settings) {
  return judge(planned.scenario, subjects_of(planned.plans), measurement,
               settings_of(planned, std::move(settings)));
}

std::vector<AssertionVerdict> decide_counts(const Planned& planned, const Traced& traced) {
  if (planned.scenario.calibrate || planned.scenario.requirements != Requirements{}) return {};
  if (traced.rounds.empty() || !traced.unavailable.empty() || !traced.not_as_planned.empty())
    return {};
  return judge_counts(planned.scenario, subjects_of(planned.plans), traced);
}

std::optional<Decided> decide_before_rounds(const Planned& planned, const DeviceIdentity& device,
                                            JudgeSettings settings) {
  settings = settings_of(planned, std::move(settings));
  if (is_planned_only(planned.scenario)) {
    Measurement none = by_plans_alone(planned, device);
    return Decided{judge(planned.scenario, subjects_of(planned.plans), none, settings),
                   std::move(none)};
  }
  if (const auto unmet = unmet_requirement(planned.scenario, device)) {
    return Decided{skipped_verdict(planned.scenario, device, *unmet, settings), {}};
  }
  if (const auto failure = calibration_failure(planned)) {
    return Decided{skipped_verdict(planned.scenario, device, *failure, settings), {}};
  }
  return std::nullopt;
}

Decided decide_one(const Planned& planned, Device& device, std::uint64_t seed,
                   JudgeSettings settings, const ProgressSink& progress,
                   const AfterRound& after_round) {
  settings = settings_of(planned, std::move(settings));
  if (auto decided = decide_before_rounds(planned, device.identity(), settings))
    return std::move(*decided);
  for (const StepPlan& plan : planned.plans) {
    if (const auto missing = device.missing_for(plan))
      return {skipped_verdict(planned.scenario, device.identity(), *missing, settings), {}};
  }
  const Enough enough = enough_evidence(planned.scenario, subjects_of(planned.plans), settings);
  MeasureRequest request;
  request.knobs = planned.scenario.measure;
  request.scenario_fingerprint = planned.scenario.fingerprint;
  request.seed = seed_of(planned.scenario, seed);
  request.fewest_rounds =
      std::max(fewest_rounds_to_hold(planned.scenario, settings), planned.fewest_rounds);
  request.stretches = planned.stretches;
  request.enough = [&](const Measurement& so_far) {
    if (after_round) after_round(so_far);
    return interrupted != 0 ||
           (enough(so_far) && std::ssize(so_far.rounds) >= planned.fewest_rounds);
  };
  request.progress = [&](const Progress& now) {
    const auto cost = forecast(now.expected, planned.scenario, settings);
    if (now.rounds == 0 && cost) progress.forecast(planned.scenario, *cost);
    progress.measuring(planned.scenario, now);
  };
  Measurement measurement = measure(device, planned.plans, request);
  measurement.traced = planned.traced;
  if (interrupted) return {{}, std::move(measurement)};  // the verdict is not needed
  Decided decided;
  decided.wall_times = measurement.wall_times;
  {
    const TimeOfScope judging(decided.wall_times[WallPart::judging]);
    decided.verdict = judge(planned.scenario, subjects_of(planned.plans), measurement, settings);
  }
  decided.measurement = std::move(measurement);
  return decided;
}

Decided decide_without_rounds(const Planned& planned, const DeviceIdentity& device,
                              std::uint64_t seed, JudgeSettings settings,
                              const std::string& failure) {
  Measurement none = unmeasured(planned.scenario, subjects_of(planned.plans), device, seed);
  none.traced = planned.traced;
  Decided decided{judge_one(planned, none, std::move(settings)), std::move(none)};
  decided.verdict.failed = failure;
  return decided;
}

}  // namespace stepgate
