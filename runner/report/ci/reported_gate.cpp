// SPDX-License-Identifier: MIT
#include "report/ci/reported_gate.h"

#include <algorithm>
#include <array>

namespace stepgate {
namespace {

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

ReportedCase passed_case(std::string title, std::string message) {
  return {.name = {},
          .title = std::move(title),
          .place = {},
          .end = CaseEnd::passed,
          .type = "passes",
          .message = std::move(message),
          .assertion = nullptr};
}

class GateCases {
 public:
  GateCases(const GateVerdict& verdict, UndecidedPolicy policy)
      : verdict_(verdict), policy_(policy) {}

  // Findings of these kinds, and of what has none among `looked_at` that it passed.
  ReportedScenario of(const std::string& name, std::span<const FindingKind> kinds,
                      const std::vector<ReportedCase>& looked_at) const {
    ReportedScenario reported{
        .name = name, .verdict = nullptr, .cases = {}, .scenario = nullptr, .pictures = {}};
    for (const Finding& finding : verdict_.findings) {
      if (std::ranges::find(kinds, finding.kind) == kinds.end()) continue;
      std::string message = finding.words;
      if (!finding.mechanism.empty()) message += "; " + finding.mechanism;
      if (finding.accepted) {
        message += "; accepted by " + finding.accepted->who + " until " + finding.accepted->until +
                   ": " + finding.accepted->why;
      }
      reported.cases.push_back({.name = {},
                                .title = title(finding),
                                .place = finding.place,
                                .end = end_of_finding(finding.severity, policy_),
                                .type = std::string(name_of(finding.severity)),
                                .message = std::move(message),
                                .assertion = nullptr});
    }
    const std::size_t found = reported.cases.size();
    for (const ReportedCase& one : looked_at) {
      const bool has_finding = std::any_of(
          reported.cases.begin(), reported.cases.begin() + static_cast<std::ptrdiff_t>(found),
          [&](const ReportedCase& other) {
            return one.title.ends_with('.') ? other.title.starts_with(one.title)
                                            : other.title == one.title;
          });
      if (!has_finding) reported.cases.push_back(one);
    }
    return reported;
  }

 private:
  static std::string title(const Finding& finding) {
    return finding.workload.empty() ? finding.what : finding.workload + "." + finding.what;
  }

  const GateVerdict& verdict_;
  UndecidedPolicy policy_;
};

}  // namespace

ReportedCases reported_gate(const RunInfo& run, const GateSubject& subject, const GateLooks& looks,
                            const GateVerdict& verdict, UndecidedPolicy policy) {
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
      timed.push_back(passed_case(workload.name + ".time", workload.reason));
  }
  std::vector<ReportedCase> decided;
  for (const HeadAssertion& one : looks.assertions) {
    decided.push_back(passed_case(one.scenario + "." + one.name,
                                  std::string(outcome_in_words(one)) + ": " + one.reason));
    decided.back().place = one.place;
  }
  const GateCases cases(verdict, policy);
  ReportedCases reported{
      .verb = "gate",
      .run = run,
      .simulated = subject.both && subject.both->base.simulated,
      .ended_early = false,
      .scenarios = {},
      .code = exit_code(verdict, policy),
      .gate = std::make_shared<ReportedGate>(ReportedGate{subject, looks, verdict})};
  std::array parts{cases.of("counts", counts, counted), cases.of("time", time, timed),
                   cases.of("assertions", assertion, decided), cases.of("scenarios", scenario, {})};
  for (ReportedScenario& part : parts) {
    for (ReportedCase& one : part.cases) {
      if (one.title.ends_with('.')) one.title += "counts";
      one.title = part.name + "." + one.title;
    }
    if (!part.cases.empty()) reported.scenarios.push_back(std::move(part));
  }
  name_apart(reported.scenarios);
  return reported;
}

ReportedCases gate_that_has_not_ended(const RunInfo& run, const std::string& reason) {
  ReportedCases reported{.verb = "gate",
                         .run = run,
                         .simulated = false,
                         .ended_early = true,
                         .scenarios = {},
                         .code = std::nullopt,
                         .gate = nullptr};
  reported.scenarios.push_back({.name = "gate",
                                .verdict = nullptr,
                                .cases = {{.name = {},
                                           .title = "gate.ended",
                                           .place = {},
                                           .end = CaseEnd::error,
                                           .type = std::string(not_run),
                                           .message = reason,
                                           .assertion = nullptr}},
                                .scenario = nullptr,
                                .pictures = {}});
  name_apart(reported.scenarios);
  return reported;
}

}  // namespace stepgate
