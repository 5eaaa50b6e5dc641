// SPDX-License-Identifier: MIT
#include "compare/keep/judge_keep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/process/child.h"
#include "base/seconds.h"
#include "compare/gate/compare_counts.h"
#include "device/open_device.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

// A kernel that is faster by less than this may be so by chance, since it is traced in few steps.
constexpr double smallest_told_gain = 0.05;

// "1.000x [0.998, 1.002]".
std::string ratio_in_words(const KeepVerdict& verdict) {
  std::string words = fmt::format("{:.3f}x", verdict.ratio.value_or(1));
  if (verdict.interval)
    words += fmt::format(" [{:.3f}, {:.3f}]", verdict.interval->low, verdict.interval->high);
  return words;
}

bool is_held_back(const WorkloadVerdict& workload) {
  return workload.timed && workload.timed->held_back_by_total;
}

// Total time that a few slow steps of BASE make longer is no reason to go on with a candidate whose
// typical launch refutes the gain.
bool refutes(const WorkloadVerdict& workload) {
  return workload.outcome == Outcome::fails ||
         (is_held_back(workload) && workload.timed->evidence_against >= 1 / error_of_a_discard);
}

const WorkloadVerdict& deciding(const std::vector<WorkloadVerdict>& workloads) {
  const auto refuting = std::ranges::find_if(workloads, refutes);
  if (refuting != workloads.end()) return *refuting;
  const auto evidence = [](const WorkloadVerdict& workload) {
    return workload.timed ? workload.timed->evidence_for : 0;
  };
  // One whose clocks cannot be believed has no evidence.
  return *std::ranges::min_element(workloads, {}, [&](const WorkloadVerdict& workload) {
    return std::pair(workload.outcome != Outcome::not_comparable, evidence(workload));
  });
}

// Returns the seconds until all are decided, at the pace of this measurement; nullopt where more
// time would not decide.
std::optional<double> seconds_missing(const ComparisonVerdict& comparison) {
  double pairs = 0;
  for (const WorkloadVerdict& workload : comparison.workloads) {
    if (workload.outcome != Outcome::undecided) continue;
    if (workload.out_of_reach || !workload.timed || !workload.timed->rounds_missing)
      return std::nullopt;
    pairs = std::max(pairs, *workload.timed->rounds_missing);
  }
  if (comparison.pairs == 0) return std::nullopt;
  return pairs * seconds(comparison.wall_time) / static_cast<double>(comparison.pairs);
}

std::string what_is_missing(const ComparisonVerdict& comparison, const WorkloadVerdict& workload) {
  if (is_held_back(workload))
    return fmt::format("in total time {:.3f}x: they disagree, and more time would not decide",
                       *workload.timed->total_ratio);
  const auto missing = seconds_missing(comparison);
  return missing ? fmt::format("needs about {} more", seconds_in_words(std::ceil(*missing)))
                 : "it lies too close to the gain for more time to decide";
}

bool is_of_head(const Finding& finding) {
  return finding.words.starts_with("HEAD");
}

std::string sentence_of(const Finding& finding) {
  std::string words = finding.kind == FindingKind::assertion && !finding.workload.empty()
                          ? fmt::format("assertion {} fails: {}", finding.what, finding.words)
                          : finding.words;
  if (!finding.mechanism.empty()) words += "; " + finding.mechanism;
  return words;
}

// Returns whether HEAD's plan says that memory, and its trace no other.
bool is_planned_memory(const Finding& finding, const StepCounts& head) {
  if (finding.kind != FindingKind::counts || finding.unit != MetricUnit::bytes) return false;
  const auto planned = head.planned.find(finding.what);
  const auto traced = head.traced.find(finding.what);
  if (planned == head.planned.end() || finding.head != planned->second) return false;
  return traced == head.traced.end() || traced->second <= planned->second * (1 + exact_enough);
}

KeepVerdict discarded(const Finding& finding, KeepGround ground) {
  return {.outcome = KeepOutcome::discard,
          .ground = ground,
          .work = finding.workload,
          .why = sentence_of(finding)};
}

}  // namespace

ComparisonSettings settings_of_keep(const Candidate& candidate, double gain) {
  return {.margin = -gain,
          .earlier = candidate.pairs,
          .alpha = error_of_a_discard,
          .beta = candidate.level};
}

std::function<std::vector<int>(const ComparisonMeasurement&)> undecided_of_keep(
    std::span<const std::string> workloads, const ComparisonSettings& settings) {
  return [all = workloads.size(), settings,
          decide = undecided_workloads(workloads, settings)](const ComparisonMeasurement& so_far) {
    std::vector<int> open = decide(so_far);
    if (open.size() == all || open.empty()) return open;
    if (std::ranges::any_of(judge_comparison({}, so_far, settings).workloads, refutes))
      open.clear();
    return open;
  };
}

KeepVerdict judge_keep(const ComparisonVerdict& comparison) {
  const WorkloadVerdict& workload = deciding(comparison.workloads);
  KeepVerdict verdict{.ground = KeepGround::time,
                      .work = workload.name,
                      .pairs = workload.pairs + workload.earlier_pairs,
                      .why = workload.reason};
  if (workload.timed) {
    verdict.ratio = workload.timed->ratio;
    verdict.interval = workload.timed->interval;
    verdict.evidence = workload.timed->evidence_for;
  }
  switch (workload.outcome) {
    case Outcome::passes:
      verdict.outcome = KeepOutcome::keep;
      verdict.why = fmt::format(
          "the step takes {}, at most {:.3f}x at an error rate of {}; the "
          "limit is {:.3f}x",
          ratio_in_words(verdict), workload.timed->shown.high.value_or(1),
          share_in_words(comparison.settings.beta), 1 + workload.margin);
      break;
    case Outcome::fails:
      verdict.outcome = KeepOutcome::discard;
      break;
    case Outcome::undecided:
      if (refutes(workload)) {
        verdict.outcome = KeepOutcome::discard;
        break;
      }
      verdict.ground = KeepGround::nothing;
      verdict.why = fmt::format("the step takes {}; {}", ratio_in_words(verdict),
                                what_is_missing(comparison, workload));
      break;
    default:
      verdict.ground = KeepGround::nothing;
      break;
  }
  return verdict;
}

std::vector<Finding> findings_of_keep(std::span<const CountedPair> pairs,
                                      std::optional<std::int64_t> more_workspace) {
  std::vector<Finding> findings;
  for (const CountedPair& pair : pairs) {
    std::vector<Finding> found = compare_counts(pair);
    std::erase_if(found, [&](const Finding& finding) {
      if (finding.what == "losses") return !pair.base.gradients.empty();
      return more_workspace && finding.severity == Severity::not_gated &&
             finding.what != "gradients" && finding.what != "trace";
    });
    for (Finding& finding : found) {
      if (more_workspace.value_or(0) > 0 && is_planned_memory(finding, pair.head))
        finding.severity = Severity::note;
    }
    std::ranges::move(found, std::back_inserter(findings));
  }
  return findings;
}

std::optional<KeepVerdict> refusal_in(std::span<const Finding> findings) {
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::failed) continue;
    if (!is_of_head(finding)) throw WorkerError(finding.words);
    return discarded(finding, KeepGround::failure);
  }
  const auto blocks = [](const Finding& finding) { return finding.severity == Severity::blocks; };
  if (const auto first = std::ranges::find_if(findings, blocks); first != findings.end()) {
    KeepVerdict verdict =
        discarded(*first, first->kind == FindingKind::assertion ? KeepGround::assertions
                                                                : KeepGround::counts);
    const auto all = std::ranges::count_if(findings, blocks);
    if (all > 1) verdict.why += fmt::format("; and {} more", all - 1);
    return verdict;
  }
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::not_gated) throw NotGatedError(finding.words);
  }
  return std::nullopt;
}

std::string faster_alone(const std::string& name, double base_seconds, double head_seconds,
                         const KeepVerdict& verdict) {
  if (!(head_seconds > 0) || base_seconds < (1 + smallest_told_gain) * head_seconds) return "";
  return fmt::format("{} {:.2g}x as fast and the step is not: {}", name,
                     base_seconds / head_seconds, ratio_in_words(verdict));
}

}  // namespace stepgate
