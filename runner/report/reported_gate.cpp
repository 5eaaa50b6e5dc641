// SPDX-License-Identifier: MIT
// Makes the report of a gate: each finding once, the result, and cases for everything compared.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "report/append.h"
#include "report/command_again.h"
#include "report/report.h"

namespace stepgate {
namespace {

// The last line says which --undecided policy turned an undecided gate into a pass or a failure.
std::string_view policy_in_words(const GateVerdict& verdict, UndecidedPolicy policy) {
  if (verdict.severity != Severity::undecided || policy == UndecidedPolicy::skip) return "";
  return policy == UndecidedPolicy::pass ? "; passes, as --undecided pass says"
                                         : "; fails, as --undecided fail says";
}

std::string_view thing_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::scenario:
      return "change of a scenario";
    case FindingKind::counts:
      return "count";
    case FindingKind::losses:
      return "workload that is another step";
    case FindingKind::time:
      return "time";
    case FindingKind::assertion:
      return "assertion";
  }
  return "";
}

// Returns the counts by kind: "3 x count, 2 x time".
std::string kinds_in_words(const std::vector<Finding>& findings, Severity severity) {
  std::map<FindingKind, int> kinds;
  for (const Finding& finding : findings) kinds[finding.kind] += finding.severity == severity;
  std::vector<std::string> words;
  for (const auto& [kind, count] : kinds) {
    if (count > 0) words.push_back(fmt::format("{} x {}", count, thing_of(kind)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string way_out_of(const std::vector<Finding>& findings) {
  const auto undecided = [](const Finding& finding) {
    return finding.severity == Severity::undecided;
  };
  const auto within_reach = [&](const Finding& finding) {
    return undecided(finding) && !finding.out_of_reach;
  };
  if (std::ranges::count_if(findings, within_reach) == std::ranges::count_if(findings, undecided))
    return "more evidence would decide";
  return std::ranges::any_of(findings, within_reach)
             ? "more evidence would decide some; of the others, widen the limit"
             : "more evidence would not decide it: widen the limit";
}

std::string answer_in_words(const GateVerdict& verdict) {
  switch (verdict.severity) {
    case Severity::blocks:
      return "BLOCKED: " + kinds_in_words(verdict.findings, Severity::blocks);
    case Severity::failed:
      return "FAILED: a program broke, nothing it says is believed";
    case Severity::not_gated:
      return "NOT GATED: " + kinds_in_words(verdict.findings, Severity::not_gated) +
             " could not be compared";
    case Severity::undecided:
      return "UNDECIDED: " + kinds_in_words(verdict.findings, Severity::undecided) + "; " +
             way_out_of(verdict.findings);
    case Severity::note:
      return std::ranges::any_of(
                 verdict.findings,
                 [](const Finding& finding) { return finding.accepted.has_value(); })
                 ? "PASSED: what HEAD does worse was accepted"
                 : "PASSED: HEAD does what BASE did, within the margin";
  }
  return "";
}

// The limit, where there is one, is part of what was accepted.
std::string accepted_in_words(const Accepted& entry) {
  return fmt::format("accepted{} by {} until {}: {}",
                     entry.limit_text.empty() ? "" : " up to " + entry.limit_text, entry.who,
                     entry.until, entry.why);
}

// Makes reported findings in the order of the findings.
std::vector<ReportedFinding> reported_findings(const std::vector<Finding>& findings) {
  std::vector<ReportedFinding> all;
  for (const Finding& finding : findings) {
    const auto same = std::ranges::find_if(all, [&](const ReportedFinding& one) {
      return one.finding.severity == finding.severity && one.finding.words == finding.words &&
             one.finding.mechanism == finding.mechanism;
    });
    if (same == all.end()) {
      all.push_back({.finding = finding,
                     .workloads = {finding.workload},
                     .place = finding.place.line > 0 ? place_in_words(finding.place) : "",
                     .accepted = finding.accepted ? accepted_in_words(*finding.accepted) : ""});
    } else if (same->workloads.back() != finding.workload) {
      // Equal findings about the same workload are reported once.
      same->workloads.push_back(finding.workload);
    }
  }
  return all;
}

// Returns the exit code for the worst finding about HEAD.
ExitCode exit_code(const GateVerdict& verdict, UndecidedPolicy policy) {
  switch (verdict.severity) {
    case Severity::blocks:
      return ExitCode::fails;
    case Severity::failed:
      return ExitCode::device_failed;
    case Severity::not_gated:
      return ExitCode::not_gated;
    case Severity::undecided:
      return exit_code(Outcome::undecided, policy);
    case Severity::note:
      return ExitCode::passes;
  }
  return ExitCode::device_failed;
}

CaseEnd end_of_finding(Severity severity, UndecidedPolicy policy) {
  switch (severity) {
    case Severity::blocks:
      return CaseEnd::failed;
    case Severity::failed:
    case Severity::not_gated:
      return CaseEnd::error;
    case Severity::undecided:
      return end_of_undecided(policy);
    case Severity::note:
      return CaseEnd::passed;
  }
  return CaseEnd::error;
}

ReportedCase case_of(const Finding& finding, UndecidedPolicy policy) {
  std::string message = finding.words;
  if (!finding.mechanism.empty()) message += "; " + finding.mechanism;
  if (finding.accepted) message += "; " + accepted_in_words(*finding.accepted);
  return {.title = finding.workload.empty() ? finding.what : finding.workload + "." + finding.what,
          .place = finding.place,
          .end = end_of_finding(finding.severity, policy),
          .type = std::string(finding.outcome == Outcome::passes ? in_words(Outcome::passes)
                                                                 : name_of(finding.severity)),
          .why = message,
          .message = std::move(message)};
}

constexpr std::string_view part_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::counts:
    case FindingKind::losses:
      return "counts";
    case FindingKind::time:
      return "time";
    case FindingKind::assertion:
      return "assertions";
    case FindingKind::scenario:
      return "scenarios";
  }
  return "";
}

// This name stands for every count of a workload.
constexpr std::string_view all_counts = "counts";

Finding same_counts(const std::string& workload) {
  return {.kind = FindingKind::counts,
          .severity = Severity::note,
          .workload = workload,
          .what = std::string(all_counts),
          .words = "every count and loss is BASE's",
          .outcome = Outcome::passes};
}

// Says what the gate looked at, one by one, each with its own outcome.
std::vector<Finding> looked_at(const GateLooks& looks) {
  std::vector<Finding> all;
  std::ranges::transform(looks.counted, std::back_inserter(all), same_counts);
  if (looks.comparison) {
    for (const WorkloadVerdict& workload : looks.comparison->workloads)
      all.push_back(as_finding(workload));
  }
  for (const HeadAssertion& assertion : looks.assertions) all.push_back(as_finding(assertion));
  return all;
}

bool is_about(const Finding& found, const Finding& looked_at) {
  const bool is_any = looked_at.kind == FindingKind::counts && looked_at.what == all_counts;
  return part_of(found.kind) == part_of(looked_at.kind) && found.workload == looked_at.workload &&
         (is_any || found.what == looked_at.what);
}

// Adds cases for the findings of this part, and one for each thing looked at without a finding.
void add_part(Report& report, std::string_view name, std::span<const Finding> looked_at,
              UndecidedPolicy policy) {
  ReportedScenario part{.name = std::string(name), .again = command_again(report.run)};
  const std::vector<Finding>& findings = report.gate->verdict.findings;
  const auto add = [&](const Finding& finding) {
    part.cases.push_back(case_of(finding, policy));
    part.cases.back().title = fmt::format("{}.{}", name, part.cases.back().title);
  };
  for (const Finding& finding : findings) {
    if (part_of(finding.kind) == name) add(finding);
  }
  for (const Finding& one : looked_at) {
    const auto about_it = [&](const Finding& found) { return is_about(found, one); };
    if (part_of(one.kind) == name && std::ranges::none_of(findings, about_it)) add(one);
  }
  if (!part.cases.empty()) report.scenarios.push_back(std::move(part));
}

std::shared_ptr<const ReportedGate> reported_gate(GateSubject subject, GateLooks looks,
                                                  GateVerdict verdict, UndecidedPolicy policy) {
  const Introduction* both = subject.both ? &*subject.both : nullptr;
  auto gate = std::make_shared<ReportedGate>();
  gate->base = program_in_words(subject.base, both ? &both->base : nullptr);
  gate->head = program_in_words(subject.head, both ? &both->head : nullptr);
  gate->device = both ? both->base.device : "";
  gate->margin = margin_in_words(subject);
  gate->findings = reported_findings(verdict.findings);
  gate->answer = answer_in_words(verdict);
  gate->policy = policy_in_words(verdict, policy);
  gate->subject = std::move(subject);
  gate->looks = std::move(looks);
  gate->verdict = std::move(verdict);
  return gate;
}

}  // namespace

std::string program_in_words(const std::string& given, const Hello* hello) {
  if (hello == nullptr) return given;
  return fmt::format("{} ({}{}{})", given, hello->program, hello->version.empty() ? "" : " ",
                     hello->version);
}

std::string margin_in_words(const GateSubject& subject) {
  std::string words = fmt::format("{:.3g} %", 100 * subject.margin);
  if (subject.wider > 0)
    words += fmt::format(", more for {}", counted_in_words(subject.wider, "workload"));
  if (!subject.margin_source.empty()) words += " by " + subject.margin_source;
  return words;
}

Report gate_report(const RunInfo& run, GateSubject subject, GateLooks looks, GateVerdict verdict,
                   UndecidedPolicy policy) {
  const std::vector<Finding> all = looked_at(looks);
  Report report{.verb = "gate",
                .run = run,
                .simulated = subject.both && subject.both->base.simulated,
                .code = exit_code(verdict, policy)};
  report.gate = reported_gate(std::move(subject), std::move(looks), std::move(verdict), policy);
  for (const FindingKind kind :
       {FindingKind::counts, FindingKind::time, FindingKind::assertion, FindingKind::scenario})
    add_part(report, part_of(kind), all, policy);
  count_and_name(report);
  return report;
}

Report gate_that_has_not_ended(const RunInfo& run, const std::string& reason) {
  Report report{.verb = "gate", .run = run, .ended_early = true};
  report.scenarios.push_back({.name = "gate",
                              .cases = {{.title = "gate.ended",
                                         .type = std::string(not_run),
                                         .why = reason,
                                         .message = reason}},
                              .again = command_again(run)});
  count_and_name(report);
  return report;
}

}  // namespace stepgate
