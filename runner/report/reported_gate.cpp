// SPDX-License-Identifier: MIT
// Makes the report of a gate: each finding once, the result, and cases for everything compared.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "compare/worker/kernel_workload.h"
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

ReportedCase passed_case(std::string title, std::string message, const Place& place = {}) {
  return {.title = std::move(title),
          .place = place,
          .end = CaseEnd::passed,
          .type = "passes",
          .why = message,
          .message = std::move(message)};
}

ReportedCase found_case(const Finding& finding, UndecidedPolicy policy) {
  std::string message = finding.words;
  if (!finding.mechanism.empty()) message += "; " + finding.mechanism;
  if (finding.accepted) message += "; " + accepted_in_words(*finding.accepted);
  return {.title = finding.workload.empty() ? finding.what : finding.workload + "." + finding.what,
          .place = finding.place,
          .end = end_of_finding(finding.severity, policy),
          .type = std::string(name_of(finding.severity)),
          .why = message,
          .message = std::move(message)};
}

// A title that ends in a dot stands for a whole workload.
bool is_about(const ReportedCase& found, const ReportedCase& looked_at) {
  return looked_at.title.ends_with('.') ? found.title.starts_with(looked_at.title)
                                        : found.title == looked_at.title;
}

// Adds cases for the findings of these kinds, and passing cases for all in `looked_at` without a
// finding.
void add_part(Report& report, const std::string& name, std::span<const FindingKind> kinds,
              const std::vector<ReportedCase>& looked_at, UndecidedPolicy policy) {
  ReportedScenario part{.name = name, .again = command_again(report.run)};
  for (const Finding& finding : report.gate->verdict.findings) {
    if (std::ranges::find(kinds, finding.kind) != kinds.end())
      part.cases.push_back(found_case(finding, policy));
  }
  const std::vector<ReportedCase> found = part.cases;
  std::ranges::copy_if(looked_at, std::back_inserter(part.cases), [&](const ReportedCase& one) {
    return std::ranges::none_of(found,
                                [&](const ReportedCase& other) { return is_about(other, one); });
  });
  for (ReportedCase& one : part.cases)
    one.title = fmt::format("{}.{}{}", name, one.title, one.title.ends_with('.') ? "counts" : "");
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
  constexpr std::array counts{FindingKind::counts, FindingKind::losses};
  constexpr std::array time{FindingKind::time};
  constexpr std::array assertion{FindingKind::assertion};
  constexpr std::array scenario{FindingKind::scenario};
  std::vector<ReportedCase> counted;
  for (const std::string& workload : looks.counted)
    counted.push_back(passed_case(workload + ".", "every count and loss is BASE's"));
  std::vector<ReportedCase> timed;
  if (looks.comparison) {
    for (const WorkloadVerdict& workload : looks.comparison->workloads)
      timed.push_back(passed_case(
          kernel_workload_named(workload.name) ? workload.name : workload.name + ".time",
          workload.reason));
  }
  std::vector<ReportedCase> decided;
  for (const HeadAssertion& one : looks.assertions) {
    decided.push_back(passed_case(one.scenario + "." + one.name,
                                  std::string(outcome_in_words(one)) + ": " + one.reason,
                                  one.place));
  }
  Report report{.verb = "gate",
                .run = run,
                .simulated = subject.both && subject.both->base.simulated,
                .code = exit_code(verdict, policy)};
  report.gate = reported_gate(std::move(subject), std::move(looks), std::move(verdict), policy);
  add_part(report, "counts", counts, counted, policy);
  add_part(report, "time", time, timed, policy);
  add_part(report, "assertions", assertion, decided, policy);
  add_part(report, "scenarios", scenario, {}, policy);
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
