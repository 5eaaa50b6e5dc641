// SPDX-License-Identifier: MIT
// From a measurement to a verdict: decides every assertion of a scenario by the evidence that its
// metrics need, and says when there is enough. Measures nothing, prints nothing.
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
  double alpha = 0.01;           // of a failed timed assertion
  double beta = 0.05;            // of a timed assertion that passes
  std::int64_t suite_lines = 1;  // comparisons that share suite_alpha
  double suite_alpha = 0.01;     // of any failed one among them
  // Timed assertions about stored runs, which share another suite_alpha: they have no e-values.
  std::int64_t stored_lines = 1;
  // The runs that `stored.` in assertions means; where times are compared, anchors are measured
  // too.
  std::optional<Baseline> baseline = {};
  // Evidence of earlier runs of the same pair; their timed assertions go on from there. The alpha
  // and beta of this run count, not those of earlier runs.
  EarlierEvidence earlier = {};
  // A later run may go on from this one: assertions about stored times spend their rates over all
  // of them, whatever this one is.
  bool is_kept = false;
};

// `subjects` are the measured ones: first those of the scenario, in its order, then any anchors.
Verdict judge(const Scenario&, std::span<const Subject>, const Measurement&, const JudgeSettings&);

// For a run of these scenarios as one suite: a comparison of timed or traced evidence fails as
// soon as its e-value suffices whatever becomes of the others (judge_suite.h), so that any of them
// wrongly fails in at most suite_alpha of runs. A single one keeps all of it. Assertions about
// stored times share as much again, in equal parts.
JudgeSettings suite_settings(std::span<const Scenario* const>);

// True once every timed assertion is decided, or one of the regime fails; and at once when the
// environment lets none be decided. The scenario must outlive it. Use it for one measurement: it
// remembers the rounds that it has seen.
Enough enough_evidence(const Scenario&, std::vector<Subject>, const JudgeSettings&);

// The fewest rounds for which a budget must have room: with fewer rounds of its own some timed
// assertion could not pass; 1 where no assertion is timed.
std::int64_t fewest_rounds_to_hold(const Scenario&, const JudgeSettings&);
// The fewest that can refute all of its comparisons, which are more where alpha is shared by many
// lines.
std::int64_t fewest_rounds_to_refute(const Scenario&, const JudgeSettings&);

// Cost of a verdict, before the first round is run.
struct Forecast {
  std::chrono::nanoseconds round{0};
  std::int64_t rounds_to_hold = 0;    // at the earliest, all lines
  std::int64_t rounds_to_refute = 0;  // at the earliest, one line
  // Until a line is decided that is true or false by one percent, at the noise that the pilot saw.
  std::optional<double> rounds_for_one_percent;
  std::int64_t rounds_that_fit = 0;
};

// Nothing for a device without time. The rounds are expected_rounds of base/stats/e_process.h.
std::optional<Forecast> forecast(const ExpectedCost&, const Scenario&, const JudgeSettings&);

// With fewer traced rounds some traced assertion could not fail or could not pass; at least
// two, so that counts can be compared.
std::int64_t fewest_traced_rounds(const Scenario&, const JudgeSettings&);
// The same without failing, which takes the most where alpha is shared by many lines.
std::int64_t fewest_traced_rounds_to_hold(const Scenario&, const JudgeSettings&);

// The requirement of the scenario that the device does not meet, in words.
std::optional<std::string> unmet_requirement(const Scenario&, const DeviceIdentity&);

// Whether the relation is true of two exact values.
bool relation_holds(const Expectation&, double left, double right);

// Every assertion skipped for one reason; nothing was run.
Verdict skipped_verdict(const Scenario&, const DeviceIdentity&, const std::string& reason,
                        const JudgeSettings&);

}  // namespace stepgate
