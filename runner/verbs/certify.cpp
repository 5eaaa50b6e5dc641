// SPDX-License-Identifier: MIT
// `stepgate certify`: the gate on variants whose difference is known.
#include <chrono>
#include <iostream>
#include <limits>
#include <optional>

#include "judge/certificate_file.h"
#include "judge/certification.h"
#include "measure/measure.h"
#include "plan/counted_metrics.h"
#include "plan/inject.h"
#include "report/print_certificate.h"
#include "verbs/fit_to_device.h"
#include "verbs/interruption.h"
#include "verbs/planned.h"
#include "verbs/verbs.h"

namespace stepgate {
namespace {

constexpr double margin = 0.005;
constexpr double most_seconds_of_a_gate = 5;

struct Tried {
  TrialResult result;
  Measurement measurement;
  std::vector<double> contrasts;
};

Tried run_trial(Device& device, const Trial& trial, const std::vector<StepPlan>& pair,
                const Scenario& scenario, std::int64_t gates, std::uint64_t seed) {
  const JudgeSettings settings{.counted = counted};
  MeasureRequest request;
  request.knobs = scenario.measure;
  request.knobs.rounds = std::numeric_limits<std::int32_t>::max();
  request.knobs.max_seconds = std::numeric_limits<std::int32_t>::max();
  request.scenario_fingerprint = scenario.fingerprint;
  request.seed = seed;
  std::optional<GateSeries> series;
  request.enough = [&](const Measurement& so_far) {
    if (!series) {
      series.emplace(no_slower_than(margin), pair, settings, gates,
                     rounds_within(most_seconds_of_a_gate, so_far));
    }
    return interrupted != 0 || series->add(so_far);
  };
  Measurement measurement = measure(device, pair, request);
  if (!series) {
    throw RequestError("nothing can be certified on a device without time",
                       "say --device cuda or simulated");
  }
  return {result_of(trial, measurement, *series), std::move(measurement), series->contrasts()};
}

Certificate certify(const Planned& planned, const StepPlan& plan, Device& device,
                    const Arguments& arguments, std::uint64_t seed) {
  const JudgeSettings settings;
  Certificate certificate{.environment = environment_of(device.identity()),
                          .scenario = planned.scenario.name,
                          .fingerprint = planned.scenario.fingerprint,
                          .variant = plan.variant,
                          .overrides = arguments.overrides,
                          .bottleneck = {},
                          .date = date_of(arguments),
                          .version = STEPGATE_VERSION,
                          .seed = seed,
                          .margin = margin,
                          .alpha = settings.alpha,
                          .beta = settings.beta};
  InjectionSite site;
  for (const Trial& trial : certification_trials()) {
    const bool identical = trial.name == identical_trial;
    const Tried tried = run_trial(device, trial, trial_pair(plan, trial, site), planned.scenario,
                                  identical ? arguments.gates : arguments.trial_gates, ++seed);
    if (interrupted) break;
    if (identical) {
      site = injection_site_of(tried.measurement);
      certificate.bottleneck = name_of(site.kind);
      certificate.round_seconds = round_seconds_of(tried.measurement);
      certificate.smallest_in_five_seconds = smallest_provable(
          tried.contrasts, rounds_within(most_seconds_of_a_gate, tried.measurement),
          settings.alpha);
    }
    print_trial(std::cout, tried.result);
    certificate.trials.push_back(tried.result);
  }
  return certificate;
}

std::filesystem::path path_for(const Arguments& arguments, const DeviceIdentity& device,
                               const StepPlan& plan) {
  if (!arguments.out.empty()) return arguments.out;
  return certificate_path(arguments.device.baselines, device, plan.scenario, plan.variant);
}

// Before anything is measured.
void check_files(const std::vector<Planned>& all, const DeviceIdentity& device,
                 const Arguments& arguments) {
  if (!arguments.out.empty() && all.size() > 1) {
    throw RequestError("--out names one file, and there is more than one scenario",
                       "leave it out, or certify one scenario after the other");
  }
  for (const Planned& planned : all) {
    const StepPlan& plan = plan_named(planned, arguments.variant);
    check_certificate_file(path_for(arguments, device, plan), plan.scenario, plan.variant);
  }
}

}  // namespace

int certify_gate(const Arguments& arguments) {
  const std::uint64_t seed = seed_of(arguments);
  std::vector<Planned> all = plan_all(arguments, seed);
  refuse_calibration(all);
  refuse_planned_only(all);
  const OpenedDevice opened = open_device_for(arguments, seed);
  const DeviceIdentity device = opened.device->identity();
  fit_to_device(all, device, seed);
  check_files(all, device, arguments);
  if (!opened.note.empty()) std::cout << opened.note << "\n\n";
  bool trusted = true;
  for (const Planned& planned : all) {
    const StepPlan& plan = plan_named(planned, arguments.variant);
    print_certifying(std::cout, plan, device);
    const Certificate certificate = certify(planned, plan, *opened.device, arguments, seed);
    if (interrupted) return interrupted_exit_code(interrupted);
    print_certificate(std::cout, certificate);
    const auto path = path_for(arguments, device, plan);
    write_certificate(path, certificate);
    print_certified(std::cout, path.generic_string());
    trusted = trusted && keeps_its_word(certificate);
  }
  return trusted ? 0 : 1;
}

}  // namespace stepgate
