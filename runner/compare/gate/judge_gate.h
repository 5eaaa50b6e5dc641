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
  counts,    // exact: of the plan, or of a trace
  losses,    // of the first steps, to the bit, and their gradients
  time,      // of a workload in the comparison
  assertion  // of a scenario, about HEAD alone
};
std::string_view name_of(FindingKind);

enum class Severity {
  blocks,
  undecided,
  not_gated,  // it could not be compared
  failed,     // a program broke, and said nothing that can be believed
  note        // better, new, or known: nothing to decide
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
  std::string mechanism = {};           // where it comes from; may be empty
  Place place = {};                     // in the scenario's file; no file: not known
  std::optional<Outcome> outcome = {};  // of time and of assertions; absent: of a broken scenario
  bool out_of_reach = false;            // it is undecided, and more evidence would not decide it
  // For a finding about time: the largest accepted growth, and the outcome of a comparison at it.
  std::optional<double> accepted_growth = {};
  Outcome at_accepted_growth = Outcome::undecided;
  std::optional<Accepted> accepted = {};  // by which it is a note instead
};

// The counts of one workload by both builds.
struct CountedPair {
  std::string workload;
  StepCounts base;
  StepCounts head;
};

// Compares exactly, in base units. More of anything blocks and less is a note, except for
// arithmetic: less of it is another step, so it blocks too. Counts that only a trace shows are
// marked so. A workload whose losses or gradients differ computes something else.
std::vector<Finding> compare_counts(const CountedPair&);

// Finds workloads and scenarios that only one side has. A workload that HEAD has lost is not gated.
std::vector<Finding> compare_workloads(const Introduction&);

// Says what became of BASE's scenarios in HEAD, by the name of the file. A removed scenario, and a
// changed or removed assertion, regime, requirement or tag, block; what is new is a note. `unread`
// are files of HEAD that this build cannot read, with why.
std::vector<Finding> compare_scenarios(std::span<const Scenario> base,
                                       std::span<const Scenario> head,
                                       const std::map<std::string, std::string>& unread);

// Every workload of the comparison that does not pass. The mechanism is read off both sides'
// traces, where there are any.
std::vector<Finding> findings_of(const ComparisonVerdict&, std::span<const CountedPair>);

// One sentence of a scenario that HEAD decided about itself.
struct HeadAssertion {
  std::string scenario;
  std::string name;
  std::optional<Outcome> outcome;  // absent: the scenario is broken
  std::string reason;
  Place place = {};
  bool out_of_reach = false;  // it is undecided, and more rounds would not decide it
};
// "fails", "broken".
std::string_view outcome_in_words(const HeadAssertion&);
// The findings are the assertions that do not pass.
std::vector<Finding> findings_of(std::span<const HeadAssertion>);

// BASE's word on the same assertion changes what HEAD's finding means: where BASE is no better it
// is known, and a note; where BASE holds what HEAD skips, HEAD has left its regime, which blocks.
void compare_with_base(Finding&, const HeadAssertion& of_base);
// Whether it is a finding about an assertion for which one asks what BASE says.
bool is_open(const Finding&);

struct GateVerdict {
  std::vector<Finding> findings;       // the worst first
  Severity severity = Severity::note;  // of the whole: note means that HEAD may be merged
  std::vector<std::string> unused;     // accepted entries that nothing needed, or that are over
};

// By how much more, relative, each of these workloads may take by the largest entry that counts
// today.
std::map<std::string, double> accepted_growths(std::span<const Accepted>,
                                               std::span<const std::string> workloads,
                                               const std::string& day);

// Takes what was accepted out, and orders. `day` is today.
GateVerdict judge_gate(std::vector<Finding>, std::span<const Accepted>, const std::string& day);

}  // namespace stepgate
