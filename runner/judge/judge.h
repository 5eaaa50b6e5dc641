// SPDX-License-Identifier: MIT
// Makes a verdict from a measurement: decides every assertion of a scenario by the evidence that
// its metrics need, and says when there is enough. Measures nothing and prints nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/earlier_evidence.h"
#include "judge/stored/baseline.h"
#include "judge/verdict/sides.h"
#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"
#include "measure/subject.h"
#include "scenario/scenario.h"

namespace stepgate {

struct JudgeSettings {
  double alpha = 0.01;           // probability that a true timed assertion fails
  double beta = 0.05;            // probability that a false timed assertion passes
  std::int64_t suite_lines = 1;  // number of comparisons that share suite_alpha
  double suite_alpha = 0.01;     // probability that any true one among them fails
  // Number of timed assertions about stored runs. They share another suite_alpha, since they have
  // no e-values.
  std::int64_t stored_lines = 1;
  // The runs that `stored.` in assertions refers to. Where times are compared, anchors are measured
  // too.
  std::optional<Baseline> baseline = {};
  // Evidence of earlier runs of the same pair, from which timed assertions continue. The alpha and
  // beta of this run count, not those of earlier runs.
  EarlierEvidence earlier = {};
  // Whether later runs may continue from this one. If so, assertions about stored times divide
  // their error rates among all these runs.
  bool is_kept = false;
};

// `subjects` are the measured ones: first the scenario's variants, in order, then any anchors.
Verdict judge(const Scenario&, std::span<const Subject>, const Measurement&, const JudgeSettings&);

// The assertions of [expect] that a trace decides without any rounds, as judge decides them.
std::vector<AssertionVerdict> judge_counts(const Scenario&, std::span<const Subject>,
                                           const Traced&);

// Skips timed and traced assertions where the regime fails, and leaves them undecided where it is
// not established. `assertions` are the verdicts of the scenario's [expect], in order.
void limit_to_regime(const Scenario&, const std::vector<AssertionVerdict>& regime,
                     std::vector<AssertionVerdict>& assertions);

// Settings for a run of these scenarios as one suite. A comparison of timed or traced evidence
// fails as soon as its e-value suffices for any outcome of the other comparisons (judge_suite.h).
// So the probability that any true one fails is at most suite_alpha. A single comparison gets all
// of suite_alpha. Assertions about stored times divide another suite_alpha equally.
JudgeSettings suite_settings(std::span<const Scenario* const>);

// True once every timed assertion is decided, or one of the regime fails, or the environment
// prevents any decision. The scenario must outlive it. Each Enough serves one measurement, since it
// remembers the rounds that it has seen.
Enough enough_evidence(const Scenario&, std::vector<Subject>, const JudgeSettings&);

// The fewest rounds for which a budget must have room: with fewer rounds of its own, some timed
// assertion could not pass. Returns 1 where no assertion is timed.
std::int64_t fewest_rounds_to_hold(const Scenario&, const JudgeSettings&);
// The fewest rounds in which all comparisons can fail. They are more where many comparisons share
// alpha.
std::int64_t fewest_rounds_to_refute(const Scenario&, const JudgeSettings&);

// Cost of a verdict, estimated before the first round.
struct Forecast {
  std::chrono::nanoseconds round{0};
  std::int64_t rounds_to_hold = 0;    // fewest rounds until all comparisons can pass
  std::int64_t rounds_to_refute = 0;  // fewest rounds until a comparison can fail
  // Expected rounds until a comparison is decided that is true or false by one percent, with the
  // noise of the warm-up.
  std::optional<double> rounds_for_one_percent;
  std::int64_t rounds_that_fit = 0;
};

// nullopt for a device that does not measure time. Rounds are expected_rounds of
// base/stats/e_process.h.
std::optional<Forecast> forecast(const ExpectedCost&, const Scenario&, const JudgeSettings&);

// With fewer traced rounds, some traced assertion could not fail or could not pass. At least two,
// so that counts can be compared.
std::int64_t fewest_traced_rounds(const Scenario&, const JudgeSettings&);
// With fewer traced rounds, some traced assertion could not pass. Failing is not considered, which
// takes more rounds where many comparisons share alpha.
std::int64_t fewest_traced_rounds_to_hold(const Scenario&, const JudgeSettings&);

// The requirement of the scenario that the device does not meet, in words; nullopt if it meets all.
std::optional<std::string> unmet_requirement(const Scenario&, const DeviceIdentity&);

// Returns whether the assertion's relation is true for two exact values.
bool relation_holds(const Expectation&, double left, double right);

// Returns a verdict that skips every assertion for one reason, when nothing was run.
Verdict skipped_verdict(const Scenario&, const DeviceIdentity&, const std::string& reason,
                        const JudgeSettings&);

}  // namespace stepgate
