// SPDX-License-Identifier: MIT
// How a gate is tried on variants whose difference is known: identical ones, and ones made slower
// or faster on purpose. Every gate is one `run` of one sentence, as a user's would be, in a process
// of its own, which gate_process.h starts. certificate.h has the result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/environment/certificate.h"
#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"
#include "plan/derive/inject.h"
#include "scenario/scenario.h"
#include "support/record/fields.h"

namespace stepgate {

// One kind of gate to be run: `b` against `a`, which are the same step but for what is injected.
struct Trial {
  std::string name;                   // "identical", "1 % slower"
  double share = 0;                   // of a step's time, injected into b; into a when negative
  std::optional<InjectionKind> kind;  // of trials without a share; otherwise the bottleneck's
};

// Identical, slower by 0.25 to 5 %, faster, and one more wait, allocation or copy a step.
std::span<const Trial> certification_trials();

// Throws RequestError when there is none.
const Trial& trial_named(const std::string& name);

// Where more work makes a step longer, on the device or on the host, and how long a step takes.
struct InjectionSite {
  InjectionKind kind = InjectionKind::device_spin;  // or host_delay
  std::chrono::nanoseconds step_time{0};
};
template <>
inline constexpr auto fields_of<InjectionSite> =
    fields<&InjectionSite::kind, &InjectionSite::step_time>;

// "device_spin" or "host_delay"; throws RequestError for anything else.
InjectionKind injection_site_named(const std::string& name);

// The step of the plan as `a` and as `b`, the same but for the trial's injection, and the sentence
// "b.step_ms_mean <= (1 + margin) * a.step_ms_mean". A share is injected where the bottleneck is,
// and nothing of it into the other one in the same way, so that they differ by the share and not by
// an operation.
struct TrialGate {
  Scenario scenario;
  std::vector<StepPlan> plans;
};
TrialGate trial_gate(const Scenario&, const StepPlan&, const Trial&, const InjectionSite&,
                     double margin);

// The first of a gate's rounds: no gate is decided by fewer, since five fair coins agree in 1
// of 32.
constexpr std::size_t rounds_of_an_estimate = 5;

// The result of one gate, and what was seen of its step.
struct GateResult {
  Outcome outcome = Outcome::undecided;
  std::int64_t rounds = 0;     // at least 2
  double gpu_seconds = 0;      // without the warm-up
  double round_seconds = 0;    // by the clock or by the device's own where that is longer
  double estimate = 0;         // mean of log(b / a) over the first rounds_of_an_estimate
  double standard_error = 0;   // of it, by these
  std::optional<double> seen;  // see TrialResult
  InjectionSite site;
};
template <>
inline constexpr auto fields_of<GateResult> =
    fields<&GateResult::outcome, &GateResult::rounds, &GateResult::gpu_seconds,
           &GateResult::round_seconds, &GateResult::estimate, &GateResult::standard_error,
           &GateResult::seen, &GateResult::site>;

// Throws DeviceError where nothing was decided because nothing was measured.
GateResult gate_result(const Verdict&, const Measurement&, double margin);

// At least one gate.
TrialResult result_of(const Trial&, std::span<const GateResult>);

// The site that most gates saw, and their median step.
InjectionSite injection_site_of(std::span<const GateResult>);
double round_seconds_mean(std::span<const GateResult>);

}  // namespace stepgate
