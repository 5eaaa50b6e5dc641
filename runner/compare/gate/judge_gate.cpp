// SPDX-License-Identifier: MIT
#include "compare/gate/judge_gate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compare/worker/kernel_workload.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

constexpr std::size_t most_named_workloads = 3;

const CountedPair* pair_of(std::span<const CountedPair> pairs, const std::string& workload) {
  const auto found = std::ranges::find(pairs, workload, &CountedPair::workload);
  return found == pairs.end() ? nullptr : &*found;
}

// Reports a comparison that ended when all workloads together failed, whichever of them cause it.
Finding together(const ComparisonVerdict& comparison) {
  std::vector<const WorkloadVerdict*> timed;
  for (const WorkloadVerdict& workload : comparison.workloads) {
    if (workload.timed) timed.push_back(&workload);
  }
  std::ranges::sort(timed, std::ranges::greater{},
                    [](const WorkloadVerdict* workload) { return workload->timed->ratio; });
  std::vector<std::string> slowest;
  for (const WorkloadVerdict* workload : timed) {
    if (slowest.size() == most_named_workloads) break;
    slowest.push_back(workload->name + ' ' + growth_in_words(workload->timed->ratio));
  }
  return {.kind = FindingKind::time,
          .severity = Severity::blocks,
          .what = "workloads",
          .words = fmt::format("all workloads together are slower than the margin, by the mean of "
                               "their e-values, {:.3g} of {:.3g} that refute; {} of {} were timed, "
                               "the slowest {}",
                               comparison.evidence_against, 1 / comparison.settings.alpha,
                               timed.size(), comparison.workloads.size(), fmt::join(slowest, ", ")),
          .outcome = Outcome::fails};
}

Severity severity_of(const std::optional<Outcome>& outcome) {
  if (!outcome) return Severity::failed;
  switch (*outcome) {
    case Outcome::passes:
      return Severity::note;
    case Outcome::fails:
      return Severity::blocks;
    case Outcome::undecided:
    case Outcome::skipped:  // until BASE is known to be outside its regime too
      return Severity::undecided;
    case Outcome::no_baseline:
    case Outcome::not_comparable:
    case Outcome::machine_slower:
      return Severity::not_gated;
  }
  return Severity::failed;
}

int rank(Severity severity) {
  switch (severity) {
    case Severity::blocks:
      return 0;
    case Severity::failed:
      return 1;
    case Severity::not_gated:
      return 2;
    case Severity::undecided:
      return 3;
    case Severity::note:
      return 4;
  }
  return 4;
}

// An entry covers a growth in time if the comparison at the accepted margin passes, with the usual
// error rates; for a metric, if the value is within the entry's limit.
bool covers(const Accepted& entry, const Finding& finding) {
  if (finding.kind == FindingKind::time) {
    return finding.accepted_growth && entry.limit >= *finding.accepted_growth &&
           finding.at_accepted_growth == Outcome::passes;
  }
  if (finding.kind != FindingKind::counts) return true;
  if (!finding.base || !finding.head) return false;
  if (*finding.head < *finding.base) return *finding.head >= entry.limit * (1 - exact_enough);
  return *finding.head <= entry.limit * (1 + exact_enough);
}

// If an assertion has the same name as a metric, an entry with that name refers to the metric.
bool is_about(const Accepted& entry, const Finding& finding) {
  const bool of_numbers = is_of_time(entry) || metric_named(entry.what);
  return speaks_of(entry, finding.workload, finding.what) &&
         !(of_numbers && finding.kind == FindingKind::assertion);
}

bool can_be_accepted(const Finding& finding) {
  return finding.severity == Severity::blocks || finding.severity == Severity::undecided;
}

std::string named(const Accepted& entry) {
  return fmt::format("{}:{}: '{}' of {}", entry.place.file, entry.place.line, entry.what,
                     entry.workload);
}

}  // namespace

Finding as_finding(const WorkloadVerdict& workload) {
  Finding finding{.kind = FindingKind::time,
                  .severity = severity_of(workload.outcome),
                  .workload = workload.name,
                  .what = "time",
                  .base = workload.base_step_seconds,
                  .head = workload.head_step_seconds,
                  .unit = MetricUnit::seconds,
                  .words = workload.reason,
                  .outcome = workload.outcome,
                  .out_of_reach = workload.out_of_reach,
                  .accepted_growth = workload.accepted_growth,
                  .at_accepted_growth = workload.at_accepted_growth};
  if (const auto kernel = kernel_workload_named(workload.name)) {
    finding.workload = kernel->workload;
    finding.what = metric_text(*kernel);
  }
  return finding;
}

std::vector<Finding> findings_of(const ComparisonVerdict& comparison,
                                 std::span<const CountedPair> pairs) {
  std::vector<Finding> findings;
  if (comparison.slower_together) findings.push_back(together(comparison));
  for (const WorkloadVerdict& workload : comparison.workloads) {
    if (workload.outcome == Outcome::passes) continue;
    if (comparison.slower_together && workload.outcome == Outcome::undecided) continue;
    findings.push_back(as_finding(workload));
    // The name of a kernel is that of no pair.
    if (const CountedPair* pair = pair_of(pairs, workload.name))
      findings.back().mechanism = parts_that_grew(pair->base, pair->head);
  }
  return findings;
}

void excuse_by_other_anchors(std::span<HeadAssertion> assertions) {
  const GrowthSinceStored* slowest = nullptr;
  for (const HeadAssertion& assertion : assertions) {
    if (assertion.outcome != Outcome::machine_slower || !assertion.since_stored) continue;
    const GrowthSinceStored& one = *assertion.since_stored;
    if (!slowest || one.most_anchor_growth > slowest->most_anchor_growth) slowest = &one;
  }
  if (!slowest) return;
  for (HeadAssertion& assertion : assertions) {
    if (assertion.outcome != Outcome::fails || !assertion.since_stored ||
        assertion.since_stored->step > slowest->most_anchor_growth)
      continue;
    assertion.outcome = Outcome::machine_slower;
    assertion.reason += fmt::format(
        "; but {} takes {:.2f} times as long as then on this machine, which would explain it",
        slowest->anchor, slowest->anchor_growth);
  }
}

std::string_view outcome_in_words(const HeadAssertion& assertion) {
  return assertion.outcome ? in_words(*assertion.outcome) : "broken";
}

Finding as_finding(const HeadAssertion& assertion) {
  return {.kind = assertion.kind,
          .severity = severity_of(assertion.outcome),
          .workload = assertion.scenario,
          .what = assertion.name,
          .words = fmt::format("{}: {}{}", outcome_in_words(assertion), assertion.reason,
                               assertion.out_of_reach ? "; widen the limit" : ""),
          .place = assertion.place,
          .outcome = assertion.outcome,
          .out_of_reach = assertion.out_of_reach};
}

std::vector<Finding> findings_of(std::span<const HeadAssertion> assertions) {
  std::vector<Finding> findings;
  for (const HeadAssertion& assertion : assertions) {
    if (assertion.outcome != Outcome::passes) findings.push_back(as_finding(assertion));
  }
  return findings;
}

bool is_open(const Finding& finding) {
  return finding.outcome == Outcome::fails || finding.outcome == Outcome::undecided ||
         finding.outcome == Outcome::skipped;
}

void compare_with_base(Finding& finding, const HeadAssertion& of_base) {
  if (!is_open(finding)) return;
  if (of_base.outcome == finding.outcome ||
      (of_base.outcome == Outcome::fails && finding.outcome == Outcome::undecided)) {
    finding.severity = Severity::note;
    finding.words += "; BASE is no better";
  } else if (of_base.outcome == Outcome::passes && finding.outcome == Outcome::skipped) {
    finding.severity = Severity::blocks;
    finding.words += "; BASE is within it";
  }
}

std::map<std::string, double> accepted_growths(std::span<const Accepted> accepted,
                                               std::span<const std::string> workloads,
                                               const std::string& day) {
  std::map<std::string, double> growths;
  for (const Accepted& entry : accepted) {
    if (!counts_on(entry, day)) continue;
    for (const std::string& workload : workloads) {
      const auto kernel = kernel_workload_named(workload);
      if (!speaks_of(entry, workload_in(workload), kernel ? metric_text(*kernel) : "time"))
        continue;
      double& growth = growths[workload];
      growth = std::max(growth, entry.limit);
    }
  }
  return growths;
}

GateVerdict judge_gate(std::vector<Finding> findings, std::span<const Accepted> accepted,
                       const std::string& day) {
  GateVerdict verdict;
  std::vector<bool> used(accepted.size());
  for (Finding& finding : findings) {
    if (!can_be_accepted(finding)) continue;
    std::string why_not;
    for (std::size_t index = 0; index < accepted.size(); ++index) {
      const Accepted& entry = accepted[index];
      if (!is_about(entry, finding)) continue;
      used[index] = used[index] || counts_on(entry, day);
      if (!counts_on(entry, day)) {
        why_not = fmt::format("; {} accepted it until {}", entry.who, entry.until);
      } else if (!covers(entry, finding)) {
        why_not = fmt::format(
            "; {} the {} that {} accepted",
            finding.kind == FindingKind::time && finding.at_accepted_growth == Outcome::undecided
                ? "not shown to be within"
                : "beyond",
            entry.limit_text, entry.who);
      } else {
        finding.severity = Severity::note;
        finding.accepted = entry;
      }
    }
    if (!finding.accepted) finding.words += why_not;
  }
  for (std::size_t index = 0; index < accepted.size(); ++index) {
    const Accepted& entry = accepted[index];
    if (used[index]) continue;
    verdict.unused.push_back(named(entry) + (counts_on(entry, day)
                                                 ? " was not needed: take it out"
                                                 : " is over since " + entry.until));
  }
  std::ranges::stable_sort(findings, {},
                           [](const Finding& finding) { return rank(finding.severity); });
  if (!findings.empty()) verdict.severity = findings.front().severity;
  verdict.findings = std::move(findings);
  return verdict;
}

}  // namespace stepgate
