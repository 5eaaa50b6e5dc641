// SPDX-License-Identifier: MIT
// Runs gates with a known answer: BASE against itself, and against itself made slower or faster by
// an injection. Counts the outcomes and says whether the error rates that a gate promises hold.
// Starts no program and prints nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/stats/binomial.h"
#include "compare/gate/judge_comparison.h"
#include "plan/derive/inject.h"

namespace stepgate {

// One kind of gate to run, where HEAD is BASE plus an injection.
struct Trial {
  std::string name;  // "identical", "1 % slower"
  // Injected into HEAD, as a share of the step time; into BASE when negative. Absent where the time
  // of the injected `kind` is unknown.
  std::optional<double> share = {};
  std::optional<InjectionKind> kind = {};  // of trials without a share
};

// The name of the trial whose programs are the same.
inline constexpr std::string_view identical_trial = "identical";

// The trials: identical programs, slower by 0.25 to 5 %, faster, and one more wait, allocation or
// copy per step.
std::span<const Trial> self_test_trials();

// The place where injected work makes a step longer, on the device or on the host, and the step
// time.
struct InjectionSite {
  InjectionKind kind = InjectionKind::device_spin;  // or host_delay
  std::chrono::nanoseconds step_time{0};
};

struct InjectedSides {
  std::vector<Injection> base;
  std::vector<Injection> head;
};

// Injects the share at the bottleneck. The other side gets the smallest injection of the same kind
// whose time is known. So the sides differ by the share and not by an operation.
InjectedSides injected_by(const Trial&, const InjectionSite&);

// A gate is estimated from its first pairs alone; every gate has this many. A gate ends early when
// its pairs happen to agree, so an estimate from all its pairs would be biased.
inline constexpr std::size_t pairs_of_an_estimate = 5;

// The result of one gate.
struct TriedGate {
  Outcome outcome = Outcome::undecided;
  std::int64_t pairs = 0;     // of launches
  double seconds = 0;         // on the clock, starts of processes included
  double step_seconds = 0;    // step time of BASE
  double estimate = 0;        // mean of log(HEAD / BASE) over the first pairs_of_an_estimate
  double standard_error = 0;  // of the estimate, from these pairs
};

// `log_ratios` has log(HEAD / BASE) of at least two pairs, in order. Sets estimate and
// standard_error.
void set_estimate(TriedGate&, std::span<const double> log_ratios);

// Makes the result from a measurement of one workload. Throws WorkerError where it has fewer than
// two pairs.
TriedGate tried_gate(const ComparisonVerdict&, const ComparisonMeasurement&);

struct TrialResult {
  std::string name;
  std::optional<double> injected = {};  // Trial::share
  std::int64_t gates = 0;
  std::int64_t slower = 0;      // gates that said that HEAD is slower and would block
  std::int64_t not_slower = 0;  // gates that said that HEAD is not slower by more than the margin
  RateBounds slower_rate = {};  // by Clopper and Pearson, each bound with 95 % confidence
  RateBounds not_slower_rate = {};
  // Mean and standard deviation of the gates' estimates, and the root mean square of the standard
  // errors within single gates.
  double estimate = 0;
  std::optional<double> spread = {};  // absent where there is only one gate
  double spread_by_pairs = 0;
  double pairs_mean = 0;
  double seconds_mean = 0;
  double step_seconds = 0;  // median step time of BASE
};

// Needs at least one gate.
TrialResult result_of(const Trial&, std::span<const TriedGate>);

// The standard deviation between gates that the scatter of their pairs does not explain: 0 if it
// explains all, absent if the spread is absent.
std::optional<double> between_gates(const TrialResult&);

// Fewest gates of identical programs that say how often such a gate blocks.
inline constexpr std::int64_t fewest_identical_gates = 20;

struct SelfTest {
  std::string workload;
  double margin = 0;
  double alpha = 0;  // rates in ComparisonSettings: alpha and then beta
  double beta = 0;
  InjectionSite site = {};
  std::vector<TrialResult> trials = {};  // completed trials
  bool stopped = false;                  // the user interrupted it
};

// The trial of identical programs; null where it has not ended.
const TrialResult* identical_programs(const SelfTest&);

// The first trial of identical programs or of a faster HEAD that is shown to block more often than
// alpha allows; null where there is none.
const TrialResult* blocked_too_often(const SelfTest&);

// The first trial that injects at least twice the margin and is shown to end with "not slower" more
// often than beta allows; null where there is none. With twice the margin, no inaccuracy of the
// injection explains it.
const TrialResult* passed_too_often(const SelfTest&);

// Power: the smallest injected slowdown above the margin such that it and every larger one are
// shown to be found in more than half of the gates. nullopt if there is none.
std::optional<double> found_from(const SelfTest&);

// Returns whether it is shown that fewer than half of these slowdowns are found.
bool has_no_power(const TrialResult& slower);

// Returns whether any trial injects more than the margin; otherwise power cannot be shown.
bool can_show_power(double margin);

// fails: one of the two trials above shows a broken rate. passes: neither does, identical programs
// were compared by at least fewest_identical_gates, and there is power. Otherwise undecided.
Outcome outcome_of(const SelfTest&);

// The smallest margin with the promised error rate. Because of between_gates, a gate of identical
// programs shows a slowdown beyond it with probability alpha, by Student's t for one more gate.
// nullopt if the spread is unknown.
std::optional<double> smallest_margin(const SelfTest&);

struct SelfTestRequest {
  std::string workload;
  ComparisonSettings settings;   // of one gate
  std::int64_t gates = 0;        // of identical programs, at least 1
  std::int64_t trial_gates = 0;  // of each other trial, at least 1
  // Runs one gate in its own processes. Returns nothing when the user interrupts it.
  std::function<std::optional<TriedGate>(const InjectedSides&)> run;
  std::function<void(const std::string& trial, std::int64_t gate, std::int64_t of)> progress;
  std::function<void(const TrialResult&)> ended;  // called after each trial
};

// Runs all trials, or none where can_show_power is false. After the trial of identical programs it
// chooses the injection site at which an injection of 5 % makes the step longer.
SelfTest test_gate(const SelfTestRequest&);

}  // namespace stepgate
