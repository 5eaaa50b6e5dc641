// SPDX-License-Identifier: MIT
// Decides whether HEAD may be merged. The inputs are the counts of both builds, their timed
// comparison, HEAD's own assertions and the changes to the scenarios. The verdict is a list of
// findings, each with the workload, the number and the mechanism. Measures nothing, prints nothing.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compare/gate/accepted.h"
#include "compare/gate/judge_comparison.h"
#include "compare/worker/protocol.h"
#include "judge/verdict/verdict.h"
#include "scenario/scenario.h"

namespace stepgate {

enum class FindingKind {
  scenario,  // that HEAD changed or removed
  counts,    // exact, from the plan or a trace
  losses,    // of the first steps, compared bit by bit, and gradients
  time,      // of a workload in the comparison
  assertion  // of a scenario, about HEAD alone
};
std::string_view name_of(FindingKind);

enum class Severity {
  blocks,
  undecided,
  not_gated,  // it could not be compared
  failed,     // a program failed, and nothing it reported can be trusted
  note        // an improvement, new, or known: nothing to decide
};
std::string_view name_of(Severity);

struct Finding {
  FindingKind kind = FindingKind::counts;
  Severity severity = Severity::blocks;
  std::string workload = {};  // "scenario/variant", or a scenario; empty: the gate as a whole
  std::string what = {};      // "host_waits_per_step", "time", "losses", an assertion's name
  std::optional<double> base = {};
  std::optional<double> head = {};
  MetricUnit unit = MetricUnit::count;
  std::string words = {};               // one sentence
  std::string mechanism = {};           // probable cause; may be empty
  Place place = {};                     // in the scenario's file; empty if unknown
  std::optional<Outcome> outcome = {};  // for time and assertions; absent for a broken scenario
  bool out_of_reach = false;            // undecided, and more evidence would not decide it
  // For a finding about time: the largest accepted growth, and the outcome of a comparison at it.
  std::optional<double> accepted_growth = {};
  Outcome at_accepted_growth = Outcome::undecided;
  std::optional<Accepted> accepted = {};  // the entry that makes it a note
};

// The counts of one workload from both builds.
struct CountedPair {
  std::string workload;
  StepCounts base;
  StepCounts head;
};

// Compares exactly, in base units. An increase blocks and a decrease is a note, except for
// arithmetic: less arithmetic is another step and blocks too. Counts that only a trace has are
// marked. A workload whose losses or gradients differ computes something else.
std::vector<Finding> compare_counts(const CountedPair&);

// Finds workloads and scenarios that only one side has. A workload that HEAD has lost is not gated.
std::vector<Finding> compare_workloads(const Introduction&);

// Compares BASE's scenarios with HEAD's, by file name. A removed scenario, and a changed or removed
// assertion, regime, requirement or tag, block; additions are notes. `unread` has files of HEAD
// that this build cannot read, with reasons.
std::vector<Finding> compare_scenarios(std::span<const Scenario> base,
                                       std::span<const Scenario> head,
                                       const std::map<std::string, std::string>& unread);

// Returns findings for every workload of the comparison that does not pass. Their mechanism comes
// from the traces of both sides, where there are any.
std::vector<Finding> findings_of(const ComparisonVerdict&, std::span<const CountedPair>);

// The outcome of one assertion of a scenario in HEAD's own run.
struct HeadAssertion {
  std::string scenario;
  std::string name;
  std::optional<Outcome> outcome;  // absent for a broken scenario
  std::string reason;
  Place place = {};
  bool out_of_reach = false;  // undecided, and more rounds would not decide it
};
// Returns the outcome, such as "fails" or "broken".
std::string_view outcome_in_words(const HeadAssertion&);
// Returns a finding for each assertion that does not pass.
std::vector<Finding> findings_of(std::span<const HeadAssertion>);

// Adjusts HEAD's finding by BASE's outcome of the same assertion. If BASE's outcome is no better,
// the finding is known and becomes a note. If BASE passes what HEAD skips, HEAD has left its
// regime, which blocks.
void compare_with_base(Finding&, const HeadAssertion& of_base);
// Returns whether the finding is about an assertion for which BASE's outcome matters.
bool is_open(const Finding&);

struct GateVerdict {
  std::vector<Finding> findings;       // the worst first
  Severity severity = Severity::note;  // of the whole; `note` means that HEAD may be merged
  std::vector<std::string> unused;     // accepted entries that were not needed or have expired
};

// The largest relative growth that valid entries accept today, by workload.
std::map<std::string, double> accepted_growths(std::span<const Accepted>,
                                               std::span<const std::string> workloads,
                                               const std::string& day);

// Removes accepted findings and sorts the others. `day` is today.
GateVerdict judge_gate(std::vector<Finding>, std::span<const Accepted>, const std::string& day);

}  // namespace stepgate
