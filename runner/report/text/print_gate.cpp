// SPDX-License-Identifier: MIT
#include "report/text/print_gate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "base/text/units.h"
#include "base/text/visible_text.h"
#include "judge/verdict/words.h"
#include "report/text/verdict_words.h"

namespace stepgate {
namespace {

constexpr std::size_t most_named_workloads = 4;
constexpr int severity_width = 9;  // of "undecided"

std::string workloads_in_words(const std::vector<std::string>& workloads) {
  const std::size_t named = std::min(workloads.size(), most_named_workloads);
  std::string words = fmt::format(
      "{}",
      fmt::join(workloads.begin(), workloads.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  if (workloads.size() > named) words += fmt::format(" and {} more", workloads.size() - named);
  return words;
}

void print_group(std::ostream& out, const FindingGroup& group, Style style) {
  const Finding& finding = *group.first;
  const std::string_view colour =
      finding.severity == Severity::blocks || finding.severity == Severity::failed
          ? colour_of(Outcome::fails)
      : finding.severity == Severity::note ? std::string_view()
                                           : colour_of(Outcome::undecided);
  const std::string cell = fmt::format("{:<{}}", name_of(finding.severity), severity_width);
  const std::string indent(static_cast<std::size_t>(severity_width) + 4, ' ');
  out << fmt::format("  {}  {}  {}\n", colour.empty() ? cell : coloured(cell, colour, style),
                     name_of(finding.kind), one_line(workloads_in_words(group.workloads)));
  out << indent << one_line(finding.words) << '\n';
  if (!finding.mechanism.empty()) out << indent << one_line(finding.mechanism) << '\n';
  if (!finding.place.file.empty() && finding.place.line > 0)
    out << indent << one_line(finding.place.file) << ':' << finding.place.line << '\n';
  if (finding.accepted) {
    const Accepted& entry = *finding.accepted;
    out << fmt::format("{}accepted{} by {} until {}: {}\n", indent,
                       entry.limit_text.empty() ? "" : " up to " + entry.limit_text,
                       one_line(entry.who), entry.until, one_line(entry.why));
  }
}

// Why an answer that is open ends as if it were none, for who reads only the last line.
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

// "3 x count, 2 x time".
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

}  // namespace

std::string program_in_words(const std::string& given, const Hello* hello) {
  if (hello == nullptr) return given;
  return fmt::format("{} ({}{}{})", given, hello->program, hello->version.empty() ? "" : " ",
                     hello->version);
}

std::vector<FindingGroup> grouped(const std::vector<Finding>& findings) {
  std::vector<FindingGroup> groups;
  for (const Finding& finding : findings) {
    const auto same = std::ranges::find_if(groups, [&](const FindingGroup& group) {
      return group.first->severity == finding.severity && group.first->words == finding.words &&
             group.first->mechanism == finding.mechanism;
    });
    if (same != groups.end()) {
      // Several facts about one workload in the same words are said once.
      if (same->workloads.back() != finding.workload) same->workloads.push_back(finding.workload);
    } else {
      groups.push_back({&finding, {finding.workload}});
    }
  }
  return groups;
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

std::string margin_in_words(const GateSubject& subject) {
  std::string words = fmt::format("{:.3g} %", 100 * subject.margin);
  if (subject.wider > 0)
    words += fmt::format(", more for {}", counted_in_words(subject.wider, "workload"));
  return words;
}

void print_gate_terms(std::ostream& out, const GateSubject& subject) {
  const Introduction* both = subject.both ? &*subject.both : nullptr;
  out << fmt::format("gate: BASE {} -> HEAD {}",
                     program_in_words(subject.base, both ? &both->base : nullptr),
                     program_in_words(subject.head, both ? &both->head : nullptr));
  if (both && !both->base.device.empty()) out << " on " << both->base.device;
  for (const GatePart part : subject.only)
    out << (part == subject.only.front() ? "; only " : " and ") << name_of(part);
  out << "; margin " << margin_in_words(subject);
  if (subject.most_timing.count() > 0)
    out << fmt::format(", at most {} of timing",
                       seconds_text(std::chrono::duration<double>(subject.most_timing).count()));
  out << '\n' << std::flush;
}

void print_gate_stage(std::ostream& out, const std::string& name, const std::string& words,
                      double seconds) {
  out << fmt::format("{:<10} {:<50} {:>6.1f} s\n", name, words, seconds) << std::flush;
}

void print_gate_note(std::ostream& out, const std::string& words) {
  out << "note: " << one_line(words) << '\n' << std::flush;
}

void print_gate_looks(std::ostream& out, const GateLooks& looks) {
  const auto line = [&](std::string_view kind, const std::string& workload,
                        const std::string& words) {
    out << fmt::format("  passes     {}  {}\n             {}\n", kind, one_line(workload),
                       one_line(words));
  };
  out << '\n';
  if (looks.comparison) {
    for (const WorkloadVerdict& workload : looks.comparison->workloads) {
      if (workload.outcome == Outcome::passes) line("time", workload.name, workload.reason);
    }
  }
  for (const HeadAssertion& assertion : looks.assertions) {
    if (assertion.outcome == Outcome::passes)
      line("assertion", assertion.scenario + "." + assertion.name, assertion.reason);
  }
}

void print_gate(std::ostream& out, const GateSubject& subject, const GateVerdict& verdict,
                UndecidedPolicy policy, Style style) {
  if (!verdict.findings.empty()) out << '\n';
  for (const FindingGroup& group : grouped(verdict.findings)) print_group(out, group, style);
  if (!verdict.findings.empty()) out << '\n';
  for (const std::string& unused : verdict.unused) print_gate_note(out, unused);
  if (subject.both && subject.both->base.simulated) out << "SIMULATED, nothing was measured: ";
  out << answer_in_words(verdict) << policy_in_words(verdict, policy) << '\n' << std::flush;
}

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

}  // namespace stepgate
