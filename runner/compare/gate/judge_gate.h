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
#include "compare/gate/compare_counts.h"
#include "compare/gate/finding.h"
#include "compare/gate/judge_comparison.h"
#include "judge/verdict/verdict.h"

namespace stepgate {

// Says what was found of this workload or kernel, even that it passes.
Finding as_finding(const WorkloadVerdict&);
// Returns findings for every workload of the comparison that does not pass, but for those that are
// undecided where all together are slower. Their mechanism comes from the traces of both sides,
// where there are any.
std::vector<Finding> findings_of(const ComparisonVerdict&, std::span<const CountedPair>);

// A step's time and its anchor's, each divided by the same of the stored runs.
struct GrowthSinceStored {
  double step = 1;
  std::string anchor;  // "hbm.1"
  double anchor_growth = 1;
  double most_anchor_growth = 1;  // upper end of its interval
};

// The outcome of one assertion of a scenario in HEAD's own run.
struct HeadAssertion {
  std::string scenario;  // or "scenario/variant", of a number that is held against stored runs
  std::string name;
  std::optional<Outcome> outcome;  // absent for a broken scenario
  std::string reason;
  Place place = {};
  bool out_of_reach = false;  // undecided, and more rounds would not decide it
  std::optional<GrowthSinceStored> since_stored = {};  // of an assertion about stored times
  // It is counts or time for a number that is held against stored runs.
  FindingKind kind = FindingKind::assertion;
};
// Changes `fails` into `machine_slower` where the step is slower than its stored runs by no more
// than the slowest anchor that the suite found to be slower. An anchor stands for the resource that
// takes most of a step, and a step with more than one is slower by a part of each.
void excuse_by_other_anchors(std::span<HeadAssertion>);
// Returns the outcome, such as "fails" or "broken".
std::string_view outcome_in_words(const HeadAssertion&);
// Says what was found of this assertion, even that it passes.
Finding as_finding(const HeadAssertion&);
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
