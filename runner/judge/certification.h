// SPDX-License-Identifier: MIT
// How a gate is tried on variants whose difference is known: identical ones, and ones made slower
// or faster on purpose. What comes out is certificate.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/certificate.h"
#include "judge/gate_series.h"
#include "measure/measurement.h"
#include "plan/inject.h"

namespace stepgate {

// One kind of gate to be run: `b` against `a`, which are the same step but for what is injected.
struct Trial {
  std::string name;                   // "identical", "1 % slower"
  double share = 0;                   // of a step's time, injected into b; into a when negative
  std::optional<InjectionKind> kind;  // of trials without a share; otherwise the bottleneck's
};

// Identical, slower by 0.25 to 5 %, faster, and one more wait, allocation or copy a step.
std::span<const Trial> certification_trials();

// "b.step_ms_mean <= (1 + margin) * a.step_ms_mean".
Expectation no_slower_than(double margin);

// Where more work makes a step longer, on the device or on the host, and how long a step takes.
struct InjectionSite {
  InjectionKind kind = InjectionKind::device_spin;  // or host_delay
  std::chrono::nanoseconds step_time{0};
};
InjectionSite injection_site_of(const Measurement&);

// The plan as `a` and as `b`, the same but for the trial's injection. A share is injected where the
// bottleneck is, and nothing of it into the other one in the same way, so that they differ by the
// share and not by an operation.
std::vector<StepPlan> trial_pair(const StepPlan&, const Trial&, const InjectionSite&);

TrialResult result_of(const Trial&, const Measurement&, const GateSeries&);

// How many rounds of the measurement's expected cost fit, at least as many as can decide.
std::int64_t rounds_within(double seconds, const Measurement&);

// Of a round, by the clock or by the device's own where that is longer (a simulated one).
double round_seconds_of(const Measurement&);

}  // namespace stepgate
