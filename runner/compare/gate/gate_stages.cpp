// SPDX-License-Identifier: MIT
#include "compare/gate/gate_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text/diagnostic.h"
#include "compare/gate/compare_programs.h"
#include "compare/gate/compare_scenarios.h"
#include "compare/gate/compared_workloads.h"
#include "compare/worker/kernel_workload.h"

namespace stepgate {
namespace {

std::string named_device(const Hello& hello) {
  return hello.device.empty() ? "a device without a name" : hello.device;
}

void refuse_unmatched_of_commands(const Hello& base, const GateScope& scope) {
  std::vector<std::string> workloads = base.workloads;
  workloads.insert(workloads.end(), base.planned.begin(), base.planned.end());
  refuse_unmatched(scope.patterns, workloads);
}

// Reports lost workloads that match the patterns, and left-out scenarios whatever the patterns are.
std::vector<Finding> lost_workloads(const Introduction& both, const GateScope& scope) {
  std::vector<Finding> lost = compare_workloads(both);
  std::erase_if(lost, [&](const Finding& finding) {
    const bool is_workload = scope.of_commands || finding.workload.find('/') != std::string::npos;
    return is_workload && !is_wanted(scope.patterns, finding.workload);
  });
  return lost;
}

bool says_why_nothing(const Finding& finding) {
  return finding.severity == Severity::failed || finding.severity == Severity::not_gated;
}

bool says_something_of(const RunOfProgram& run, const Scenario& scenario,
                       const Expectation& assertion) {
  return std::ranges::any_of(run.assertions, [&](const HeadAssertion& one) {
    return one.scenario == scenario.name && (one.name == assertion.name || !one.outcome);
  });
}

void add_missing(const RunOfProgram& run, std::span<const Scenario> scenarios,
                 std::vector<Finding>& findings) {
  for (const Scenario& scenario : scenarios) {
    for (const Expectation& assertion : scenario.expect) {
      if (says_something_of(run, scenario, assertion)) continue;
      findings.push_back(of_gate(FindingKind::assertion, Severity::failed, assertion.name,
                                 "HEAD's `run` says nothing of it"));
      findings.back().workload = scenario.name;
      findings.back().place = assertion.place;
    }
  }
}

// The scenario and the variant that a finding is about; null where it is about none.
std::pair<const Scenario*, const Variant*> described_by(const Finding& finding,
                                                        std::span<const Scenario> scenarios) {
  const std::size_t slash = finding.workload.find('/');
  const auto scenario =
      std::ranges::find(scenarios, finding.workload.substr(0, slash), &Scenario::name);
  if (scenario == scenarios.end()) return {};
  if (slash == std::string::npos) return {&*scenario, nullptr};
  const auto variant =
      std::ranges::find(scenario->variants, finding.workload.substr(slash + 1), &Variant::name);
  return {&*scenario, variant == scenario->variants.end() ? nullptr : &*variant};
}

}  // namespace

Finding of_gate(FindingKind kind, Severity severity, std::string what, std::string words) {
  return {.kind = kind, .severity = severity, .what = std::move(what), .words = std::move(words)};
}

bool simulates_unasked(const Hello& hello, const GateScope& scope) {
  return hello.stand_in || (hello.simulated && !scope.of_commands && !scope.simulation_asked);
}

bool same_device(const Hello& one, const Hello& other) {
  return one.device == other.device && one.simulated == other.simulated;
}

JudgedIntroduction judge_introduction(const Introduction& both, const GateScope& scope) {
  JudgedIntroduction judged;
  const auto add = [&](FindingKind kind, Severity severity, const char* what, std::string words) {
    judged.findings.push_back(of_gate(kind, severity, what, std::move(words)));
  };
  const auto& [base, head] = both;
  if (simulates_unasked(base, scope) || simulates_unasked(head, scope))
    add(FindingKind::time, Severity::not_gated, "device", std::string(simulated_unasked));
  judged.comparable = same_device(base, head);
  if (!judged.comparable) {
    add(FindingKind::time, Severity::not_gated, "device",
        "BASE runs on " + named_device(base) + " and HEAD on " + named_device(head) +
            ", or only one of them simulates: not comparable");
    return judged;
  }
  for (const auto& [side, hello] : {std::pair{"BASE", &base}, {"HEAD", &head}}) {
    if (scope.counts && !hello->counts)
      add(FindingKind::counts, Severity::not_gated, "counts",
          std::string(side) + " says that it counts nothing; --only time compares the rest");
  }
  if (scope.of_commands) refuse_unmatched_of_commands(base, scope);
  // A likely cause is a build that was taken from a cache.
  if (scope.same_program)
    add(FindingKind::time, Severity::note, "program",
        scope.of_program
            ? "BASE and HEAD are the same folder and environment: is one of them meant "
              "to be another?"
        : scope.of_kernels ? "BASE and HEAD have the same library, byte for byte: was HEAD built?"
        : scope.of_commands
            ? "BASE and HEAD run the same program, byte for byte; only their arguments can differ"
            : "BASE and HEAD are the same program, byte for byte: was HEAD built?");
  std::ranges::move(lost_workloads(both, scope), std::back_inserter(judged.findings));
  return judged;
}

std::vector<Finding> without_kernels_that_are_not_told(const Introduction& both,
                                                       std::vector<std::string>& kernels) {
  std::vector<Finding> findings;
  std::erase_if(kernels, [&](const std::string& name) {
    const auto tells = [&](const Hello& side) {
      return std::ranges::find(side.kernels, name) != side.kernels.end();
    };
    if (tells(both.base) && tells(both.head)) return false;
    const KernelWorkload kernel = *kernel_workload_named(name);
    const bool of_head = !tells(both.head);
    Finding finding = of_gate(
        FindingKind::time, of_head ? Severity::not_gated : Severity::note, metric_text(kernel),
        of_head ? fmt::format("HEAD's worker does not tell the time of {}", kernel.kernel)
                : fmt::format("{} is not compared: BASE's worker does not tell its time, as an "
                              "older stepgate does not",
                              kernel.kernel));
    finding.workload = kernel.workload;
    findings.push_back(std::move(finding));
    return true;
  });
  return findings;
}

Finding finding_of(const CountingFailure& failure) {
  Finding finding = of_gate(FindingKind::counts, Severity::failed, "counts", failure.words);
  finding.workload = failure.workload;
  return finding;
}

JudgedCounts judge_counts(std::span<const CountedPair> pairs,
                          std::span<const CountingFailure> failures) {
  JudgedCounts judged;
  for (const CountedPair& pair : pairs) {
    std::vector<Finding> found = compare_counts(pair);
    if (std::ranges::any_of(
            found, [](const Finding& finding) { return finding.severity != Severity::note; }))
      judged.differing.insert(pair.workload);
    std::ranges::move(found, std::back_inserter(judged.findings));
  }
  std::ranges::transform(failures, std::back_inserter(judged.findings), finding_of);
  return judged;
}

std::vector<CountedPair*> slowest_workloads(std::span<CountedPair> counted,
                                            const ComparisonVerdict& comparison, std::size_t most) {
  std::vector<std::pair<double, CountedPair*>> slower;
  for (CountedPair& pair : counted) {
    const auto workload =
        std::ranges::find(comparison.workloads, pair.workload, &WorkloadVerdict::name);
    if (workload != comparison.workloads.end() && workload->outcome == Outcome::fails &&
        (pair.base.untraced.empty() || is_of_program(pair)))
      slower.emplace_back(workload->timed->ratio, &pair);
  }
  std::ranges::stable_sort(slower, std::ranges::greater{}, &std::pair<double, CountedPair*>::first);
  slower.resize(std::min(slower.size(), most));
  std::vector<CountedPair*> pairs;
  for (const auto& [ratio, pair] : slower) pairs.push_back(pair);
  return pairs;
}

Introduction introduction_of(const RunOfProgram& head) {
  Hello hello;
  hello.program = "stepgate";
  hello.device = head.device;
  hello.simulated = head.simulated;
  return {.base = hello, .head = hello};
}

std::vector<Finding> judge_run(const RunOfProgram& head, std::span<const Scenario> scenarios) {
  std::vector<Finding> findings;
  if (!head.failure.empty())
    findings.push_back(of_gate(FindingKind::assertion,
                               head.gated_nothing ? Severity::not_gated : Severity::failed,
                               "assertions", "HEAD's `run` " + head.failure));
  const bool refutes = std::ranges::any_of(head.assertions, [](const HeadAssertion& assertion) {
    return assertion.outcome == Outcome::fails;
  });
  if (head.suite_failed && !refutes)
    findings.push_back(of_gate(FindingKind::assertion, Severity::blocks, "suite",
                               "the suite as a whole fails, though no single assertion of it is"));
  if (head.failure.empty()) add_missing(head, scenarios, findings);
  std::ranges::move(findings_of(head.assertions), std::back_inserter(findings));
  return findings;
}

std::vector<std::filesystem::path> files_with_open_findings(std::span<const Finding> findings,
                                                            std::span<const Scenario> scenarios) {
  std::vector<std::filesystem::path> files;
  for (const Scenario& scenario : scenarios) {
    if (std::ranges::any_of(findings, [&](const Finding& finding) {
          return finding.workload == scenario.name && is_open(finding);
        }))
      files.emplace_back(scenario.file);
  }
  return files;
}

void know_from_base(std::span<Finding> findings, const RunOfProgram& base) {
  if (base.refused)
    throw RequestError("BASE's `run` " + base.failure,
                       "HEAD's assertions are known by BASE's; give what its `run` takes");
  for (Finding& finding : findings) {
    const auto said = std::ranges::find_if(base.assertions, [&](const HeadAssertion& assertion) {
      return assertion.scenario == finding.workload && assertion.name == finding.what;
    });
    if (said != base.assertions.end()) {
      compare_with_base(finding, *said);
    } else if (!base.failure.empty() && is_open(finding)) {
      finding.severity = base.gated_nothing ? Severity::not_gated : Severity::failed;
      finding.words = fmt::format("BASE's `run` {}, so nobody knows whether HEAD did this: {}",
                                  base.failure, finding.words);
    }
  }
}

void know_from_itself(std::span<Finding> findings) {
  for (Finding& finding : findings)
    compare_with_base(finding, {.outcome = finding.outcome, .reason = {}});
}

bool decides_any(std::span<const HeadAssertion> assertions) {
  return std::ranges::any_of(assertions, [](const HeadAssertion& assertion) {
    return assertion.outcome != Outcome::skipped;
  });
}

void refuse_nothing_compared(std::vector<Finding>& findings) {
  if (std::ranges::none_of(findings, says_why_nothing))
    findings.push_back(
        of_gate(FindingKind::counts, Severity::not_gated, "workloads", "nothing was compared"));
}

void place(std::span<Finding> findings, std::span<const Scenario> scenarios) {
  for (Finding& finding : findings) {
    if (!finding.place.file.empty()) continue;
    const auto [scenario, variant] = described_by(finding, scenarios);
    if (scenario != nullptr) finding.place = {scenario->file, 0, 0};
    if (variant != nullptr) finding.place = variant->place;
  }
}

void place_at_source(std::span<Finding> findings, std::span<const Scenario> scenarios,
                     const Place& source) {
  for (Finding& finding : findings) {
    const Variant* variant = described_by(finding, scenarios).second;
    const bool is_of_library = variant != nullptr && !variant->knobs.kernels.empty();
    const bool is_failure = finding.workload.empty() && finding.severity == Severity::failed;
    if ((is_of_library || is_failure) && !finding.words.starts_with("BASE")) finding.place = source;
  }
}

}  // namespace stepgate
