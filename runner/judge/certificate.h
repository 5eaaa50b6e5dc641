// SPDX-License-Identifier: MIT
// What the gate did on one device when the answer was known: identical variants, and variants made
// slower or faster on purpose. Values only; the file is certificate_file.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/gate_series.h"
#include "measure/measurement.h"
#include "plan/inject.h"
#include "stats/binomial.h"

namespace stepgate {

// One kind of gate to be run: `b` against `a`, which are the same step but for what is injected.
struct Trial {
  std::string name;                   // "identical", "1 % slower"
  double share = 0;                   // of a step's time, injected into b; into a when negative
  std::optional<InjectionKind> kind;  // of trials without a share; otherwise the bottleneck's
};

// Identical, slower by 0.25 to 5 %, faster, and one more wait, allocation or copy a step.
std::span<const Trial> certification_trials();

struct TrialResult {
  std::string name;
  double injected = 0;         // relative, by what was asked for; 0 where it has no share
  std::optional<double> seen;  // relative slowdown of b by the clock stamps of single steps
  std::int64_t gates = 0;
  std::int64_t refuted = 0;
  std::int64_t held = 0;
  double rounds_mean = 0;       // a gate
  double gpu_seconds_mean = 0;  // a gate, without its warm-up
};

struct Certificate {
  DeviceIdentity device;
  std::string scenario;
  std::uint64_t fingerprint = 0;
  std::string variant;
  std::string bottleneck;  // "device" or "host": where shares were injected
  std::string date;
  std::string version;  // of stepgate
  std::uint64_t seed = 0;
  double margin = 0;
  double alpha = 0;
  double beta = 0;
  double round_seconds = 0;                        // on the clock, loading included
  std::optional<double> smallest_in_five_seconds;  // slowdown that is then found, see gate_series.h
  std::vector<TrialResult> trials;
};

// "b.step_ms_mean <= (1 + margin) * a.step_ms_mean".
Expectation no_slower_than(double margin);

// What a step of the measured variants waits for, and how long it takes.
struct Bottleneck {
  InjectionKind kind = InjectionKind::device_spin;  // or host_delay
  std::chrono::nanoseconds step_time{0};
};
Bottleneck bottleneck_of(const Measurement&);

// The plan as `a` and as `b`, the same but for the trial's injection. A share is injected where the
// bottleneck is, and nothing of it into the other one in the same way, so that they differ by the
// share and not by an operation.
std::vector<StepPlan> trial_pair(const StepPlan&, const Trial&, const Bottleneck&);

TrialResult result_of(const Trial&, const Measurement&, const GateSeries&);

// How many rounds of the measurement's expected cost fit, at least as many as can decide.
std::int64_t rounds_within(double seconds, const Measurement&);

// Of a round, by the clock or by the device's own where that is longer (a simulated one).
double round_seconds_of(const Measurement&);

struct FalseAlarms {
  std::int64_t refuted = 0;
  std::int64_t gates = 0;
  RateBounds rate;  // with 95 % confidence
};

// Over all trials in which b is not slower than the margin allows.
FalseAlarms false_alarms(const Certificate&);

// False when there were more false alarms than alpha explains with a probability of 0.1 %.
bool keeps_its_word(const Certificate&);

}  // namespace stepgate
