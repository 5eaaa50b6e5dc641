// SPDX-License-Identifier: MIT
// Runs gates whose answer is known: BASE against itself, and against itself made slower or faster
// by an injection. Counts the outcomes and says whether the error rates that a gate promises hold.
// Starts no program; prints nothing.
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

// One kind of gate to be run: HEAD is BASE but for what is injected.
struct Trial {
  std::string name;  // "identical", "1 % slower"
  // Injected into HEAD, of a step's time, relative; into BASE when negative. Absent: `kind` has no
  // size that is known.
  std::optional<double> share = {};
  std::optional<InjectionKind> kind = {};  // of trials without a share
};

// The name of the trial whose programs are the same.
inline constexpr std::string_view identical_trial = "identical";

// Identical, slower by 0.25 to 5 %, faster, and one more wait, allocation or copy a step.
std::span<const Trial> self_test_trials();

// Where more work makes a step longer, on the device or on the host, and how long a step takes.
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
  double step_seconds = 0;    // BASE's
  double estimate = 0;        // mean of log(HEAD / BASE) over the first pairs_of_an_estimate
  double standard_error = 0;  // of it, by these
};

// `log_ratios` are log(HEAD / BASE) of every pair, in order, at least two. Sets the last two.
void set_estimate(TriedGate&, std::span<const double> log_ratios);

// Takes a measurement of one workload. Throws WorkerError where it has fewer than two pairs.
TriedGate tried_gate(const ComparisonVerdict&, const ComparisonMeasurement&);

struct TrialResult {
  std::string name;
  std::optional<double> injected = {};  // Trial::share
  std::int64_t gates = 0;
  std::int64_t slower = 0;      // so many said that HEAD is slower: they would block
  std::int64_t not_slower = 0;  // and so many that it is not, by more than the margin
  RateBounds slower_rate = {};  // by Clopper and Pearson, each bound with 95 % confidence
  RateBounds not_slower_rate = {};
  // Mean and standard deviation of the gates' estimates, and the standard error that the pairs of
  // one gate alone explain, by the mean of its squares.
  double estimate = 0;
  std::optional<double> spread = {};  // absent: there is one gate
  double spread_by_pairs = 0;
  double pairs_mean = 0;
  double seconds_mean = 0;
  double step_seconds = 0;  // BASE's, the median
};

// There is at least one gate.
TrialResult result_of(const Trial&, std::span<const TriedGate>);

// The standard deviation between gates that the spread of their pairs does not explain. 0 if the
// pairs explain all of it; absent if the spread is absent.
std::optional<double> between_gates(const TrialResult&);

// Fewest gates of identical programs that say how often such a gate blocks.
inline constexpr std::int64_t fewest_identical_gates = 20;

struct SelfTest {
  std::string workload;
  double margin = 0;
  double alpha = 0;  // of ComparisonSettings, and
  double beta = 0;
  InjectionSite site = {};
  std::vector<TrialResult> trials = {};  // those that ended
  bool stopped = false;                  // the user interrupted it
};

// The trial of identical programs; null where it has not ended.
const TrialResult* identical_programs(const SelfTest&);

// The first trial of programs that are no slower, identical or faster, which is shown to block more
// often than alpha allows; null where there is none.
const TrialResult* blocked_too_often(const SelfTest&);

// The first trial that injects at least twice the margin, so that no inaccuracy of the injection
// explains it, and is shown to end with "not slower" more often than beta allows; null likewise.
const TrialResult* passed_too_often(const SelfTest&);

// Power: the smallest injected slowdown such that it and every larger one are shown to be found in
// more than half of the gates. Only slowdowns above the margin count. Nothing if there is none.
std::optional<double> found_from(const SelfTest&);

// Whether it is shown that fewer than half of such slowdowns are found.
bool has_no_power(const TrialResult& slower);

// Whether any trial injects more than the margin: otherwise nothing can show power.
bool can_show_power(double margin);

// failed: a rate is broken, by one of the two trials above. holds: neither is shown, identical
// programs were compared by fewest_identical_gates or more, and there is power. Otherwise
// undecided.
Outcome outcome_of(const SelfTest&);

// The smallest margin that can be kept. Because of between_gates, gates of identical programs
// appear slower by this much in a fraction alpha of cases. Computed by Student's t for one more
// gate. Nothing if the spread is unknown.
std::optional<double> smallest_margin(const SelfTest&);

struct SelfTestRequest {
  std::string workload;
  ComparisonSettings settings;   // of one gate
  std::int64_t gates = 0;        // of identical programs, at least 1
  std::int64_t trial_gates = 0;  // of each other trial, at least 1
  // Runs one gate in its own processes. Returns nothing when the user interrupts it.
  std::function<std::optional<TriedGate>(const InjectedSides&)> run;
  std::function<void(const std::string& trial, std::int64_t gate, std::int64_t of)> progress;
  std::function<void(const TrialResult&)> ended;  // each trial
};

// Runs all trials, or none where can_show_power is false. After the identical programs it chooses
// the injection site: the one where an injection of 5 % of a step slows the step more.
SelfTest test_gate(const SelfTestRequest&);

}  // namespace stepgate
