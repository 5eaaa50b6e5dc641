// SPDX-License-Identifier: MIT
#include "compare/gate/judge_gate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/text/number_words.h"
#include "base/text/units.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

constexpr double exact_enough = 1e-9;  // relative, of counts that are sums of fractions
constexpr std::size_t most_named_operations = 3;
constexpr double share_that_explains = 0.6;  // of a difference in time
constexpr std::size_t most_named_parts = 2;

bool same(double base, double head) {
  return std::abs(base - head) <= exact_enough * std::max(std::abs(base), std::abs(head));
}

MetricUnit unit_of(const std::string& metric) {
  const auto known = metric_named(metric);
  return known ? row_of(*known).unit : MetricUnit::count;
}

// Returns whether a count may change from `base` to `head`. Less arithmetic means another step, so
// it may not. Metrics that only describe a step may change.
bool may_become(const std::string& metric, double base, double head) {
  const std::optional<Metric> known = metric_named(metric);
  if (known && describes_the_step(*known)) return true;
  return head < base && known != Metric::flops_per_step;
}

std::string from_to(double base, double head, MetricUnit unit) {
  return fmt::format("{} -> {}", in_words(base, unit), in_words(head, unit));
}

// "sync: wait for the device 0 -> 1": the operations whose counts differ between the two plans.
std::string operations_that_differ(const StepCounts& base, const StepCounts& head) {
  std::vector<std::string> words;
  std::set<std::string> names;
  for (const auto& [name, times] : base.operations) names.insert(name);
  for (const auto& [name, times] : head.operations) names.insert(name);
  std::size_t more = 0;
  for (const std::string& name : names) {
    const auto times = [&](const StepCounts& counts) {
      const auto found = counts.operations.find(name);
      return found == counts.operations.end() ? 0.0 : found->second;
    };
    if (same(times(base), times(head))) continue;
    if (words.size() == most_named_operations) {
      ++more;
      continue;
    }
    words.push_back(
        fmt::format("'{}' {}", name, from_to(times(base), times(head), MetricUnit::count)));
  }
  if (more > 0) words.push_back(fmt::format("and {} more", more));
  return fmt::format("{}", fmt::join(words, ", "));
}

// Names the phases in which more calls block.
std::string waits_that_differ(const StepCounts& base, const StepCounts& head) {
  std::vector<std::string> words;
  for (const auto& [phase, waits] : head.waits) {
    const auto before = base.waits.find(phase);
    const double was = before == base.waits.end() ? 0 : before->second;
    if (waits > was * (1 + exact_enough))
      words.push_back(fmt::format("{} {}", phase, from_to(was, waits, MetricUnit::count)));
  }
  return words.empty() ? "" : fmt::format("calls that can block: {}", fmt::join(words, ", "));
}

struct Compared {
  const CountedPair& pair;
  std::vector<Finding>& findings;

  void add(const std::string& metric, double base, double head, bool by_trace) const {
    const MetricUnit unit = unit_of(metric);
    Finding finding{.kind = FindingKind::counts,
                    .severity = may_become(metric, base, head) ? Severity::note : Severity::blocks,
                    .workload = pair.workload,
                    .what = metric,
                    .base = base,
                    .head = head,
                    .unit = unit,
                    .words = fmt::format("{} {}", metric, from_to(base, head, unit))};
    if (by_trace) {
      finding.words += " in a trace, though both plans say the same";
      finding.mechanism = waits_that_differ(pair.base, pair.head);
    } else {
      finding.mechanism = operations_that_differ(pair.base, pair.head);
    }
    findings.push_back(std::move(finding));
  }

  void add_unknown(std::string what, std::string words) const {
    findings.push_back({.kind = FindingKind::counts,
                        .severity = Severity::not_gated,
                        .workload = pair.workload,
                        .what = std::move(what),
                        .words = std::move(words)});
  }

  void add_other_step(std::string words) const {
    findings.push_back({.kind = FindingKind::losses,
                        .severity = Severity::blocks,
                        .workload = pair.workload,
                        .what = "gradients",
                        .words = std::move(words)});
  }

  // Uses BASE's bound and reports the parameter that differs the most.
  void add_other_gradients() const {
    const double bound = pair.base.gradient_bound;
    GradientSketch whole;
    for (const auto& [parameter, sketch] : pair.base.gradients) add_finite(whole, sketch);
    std::string worst;
    double most = bound;
    for (const auto& [parameter, sketch] : pair.base.gradients) {
      const auto other = pair.head.gradients.find(parameter);
      if (other == pair.head.gradients.end()) {
        add_unknown("gradients", fmt::format("HEAD gives no gradient of '{}'", parameter));
        return;
      }
      const bool finite = std::isfinite(sketch.squares);
      if (!finite && !std::isfinite(other->second.squares)) continue;
      const double difference =
          relative_difference(sketch, other->second, negligible_norm(whole, sketch));
      if (difference <= most) continue;  // NaN counts as a larger difference
      worst = parameter;
      most = std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
    }
    if (!worst.empty()) {
      add_other_step(
          fmt::format("the gradient of '{}' differs by {} %, and may by {} %: not the "
                      "same step",
                      worst, number_in_words(100 * most, 2), number_in_words(100 * bound, 2)));
    }
    for (const auto& [parameter, difference] : pair.head.begun_again) {
      if (difference <= bound) continue;
      add_other_step(
          fmt::format("begun again after some steps, the gradient of '{}' differs by {} % "
                      "from HEAD's own first: not the same step for long",
                      parameter, number_in_words(100 * difference, 2)));
      return;
    }
  }

  // Compares counts. A metric that only HEAD counts is no difference; one that HEAD no longer
  // counts cannot be compared.
  // If both plans count a metric, both traces need not.
  std::set<std::string> compare(const StepCounts::Numbers& base, const StepCounts::Numbers& head,
                                bool by_trace, const std::set<std::string>& without = {}) const {
    std::set<std::string> differ;
    for (const auto& [metric, value] : base) {
      const auto other = head.find(metric);
      if (other == head.end() && !by_trace)
        add_unknown(metric, fmt::format("HEAD does not count {}, and BASE does", metric));
      if (other == head.end() || without.contains(metric) || same(value, other->second)) continue;
      add(metric, value, other->second, by_trace);
      differ.insert(metric);
    }
    return differ;
  }
};

std::string_view words_of_part(const std::string& part) {
  struct Words {
    std::string_view part;
    std::string_view words;
  };
  static constexpr std::array all{Words{"math", "kernels limited by arithmetic"},
                                  Words{"memory", "kernels limited by memory"},
                                  Words{"latency", "kernels whose loads wait for each other"},
                                  Words{"copies", "copies with no kernel beside them"},
                                  Words{"communication", "collectives with no kernel beside them"},
                                  Words{"idle_after_wait", "idle after the host waited"},
                                  Words{"idle_for_data", "idle for data"},
                                  Words{"idle_for_host", "idle while the host issues workload"},
                                  Words{"idle_in_queue", "pauses of the device"}};
  const auto found = std::ranges::find(all, part, &Words::part);
  return found == all.end() ? std::string_view(part) : found->words;
}

// The parts of a traced step that grew, the largest first, until most of the growth is named.
std::string parts_that_grew(const StepCounts& base, const StepCounts& head) {
  struct Growth {
    std::string part;
    double from;
    double to;
  };
  std::vector<Growth> grown;
  double all = 0;
  for (const auto& [part, to] : head.time) {
    const auto before = base.time.find(part);
    if (part == "step" || before == base.time.end() || to <= before->second) continue;
    grown.push_back({part, before->second, to});
    all += to - before->second;
  }
  std::ranges::sort(grown, std::ranges::greater{},
                    [](const Growth& growth) { return growth.to - growth.from; });
  std::vector<std::string> words;
  double named = 0;
  for (const Growth& growth : grown) {
    if (words.size() == most_named_parts || named >= share_that_explains * all) break;
    named += growth.to - growth.from;
    words.push_back(fmt::format("{} {}", words_of_part(growth.part),
                                from_to(growth.from, growth.to, MetricUnit::seconds)));
  }
  return words.empty() ? "" : fmt::format("{} of a traced step", fmt::join(words, ", "));
}

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
    if (slowest.size() == most_named_parts + 1) break;
    slowest.push_back(
        fmt::format("{} {:+.2g} %", workload->name, 100 * (workload->timed->ratio - 1)));
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

Finding of_scenario(const Scenario& scenario, Severity severity, std::string words) {
  return {.kind = FindingKind::scenario,
          .severity = severity,
          .workload = scenario.name,
          .what = "scenario",
          .words = std::move(words),
          .place = {scenario.file, 0, 0}};
}

void compare_assertions(const Scenario& base, std::span<const Expectation> before,
                        std::span<const Expectation> after, std::vector<Finding>& findings) {
  for (const Expectation& assertion : before) {
    const auto now = std::ranges::find(after, assertion.name, &Expectation::name);
    if (now != after.end() && now->text == assertion.text) continue;
    Finding finding = of_scenario(
        base, Severity::blocks,
        now == after.end() ? fmt::format("HEAD removes '{}': {}", assertion.name, assertion.text)
                           : fmt::format("HEAD changes '{}': {} -> {}", assertion.name,
                                         assertion.text, now->text));
    finding.place = now == after.end() ? assertion.place : now->place;
    findings.push_back(std::move(finding));
  }
  for (const Expectation& assertion : after) {
    if (std::ranges::find(before, assertion.name, &Expectation::name) == before.end()) {
      findings.push_back(of_scenario(
          base, Severity::note, fmt::format("HEAD adds '{}': {}", assertion.name, assertion.text)));
    }
  }
}

void compare_variants(const Scenario& base, const Scenario& head, std::vector<Finding>& findings) {
  const auto in_words = [](const std::optional<double>& margin) {
    return margin ? percent_text(*margin) : std::string("none of its own");
  };
  for (const Variant& before : base.variants) {
    const auto after = std::ranges::find(head.variants, before.name, &Variant::name);
    if (after == head.variants.end()) {
      findings.push_back(of_scenario(base, Severity::blocks,
                                     fmt::format("HEAD removes variant '{}'", before.name)));
      continue;
    }
    if (after->gate == before.gate) continue;
    findings.push_back(
        of_scenario(base, Severity::blocks,
                    fmt::format("HEAD changes gate.margin of '{}': {} -> {}", before.name,
                                in_words(before.gate.margin), in_words(after->gate.margin))));
  }
  for (const Variant& after : head.variants) {
    if (std::ranges::find(base.variants, after.name, &Variant::name) != base.variants.end())
      continue;
    findings.push_back(of_scenario(base, Severity::note,
                                   fmt::format("HEAD adds variant '{}', with gate.margin {}",
                                               after.name, in_words(after.gate.margin))));
  }
}

void compare_scenario(const Scenario& base, const Scenario& head, std::vector<Finding>& findings) {
  const std::size_t before = findings.size();
  compare_assertions(base, base.expect, head.expect, findings);
  // A workload's own regime excuses its assertions, so a new regime is not a mere addition.
  if (std::ranges::equal(base.regime, head.regime, {}, &Expectation::text, &Expectation::text) ==
      false)
    findings.push_back(of_scenario(base, Severity::blocks, "HEAD changes [regime]"));
  if (!(base.measure == head.measure))
    findings.push_back(of_scenario(base, Severity::blocks, "HEAD changes [measure]"));
  compare_variants(base, head, findings);
  if (!(base.requirements == head.requirements))
    findings.push_back(of_scenario(base, Severity::blocks, "HEAD changes [requires]"));
  if (base.tags != head.tags) {
    findings.push_back(
        of_scenario(base, Severity::blocks,
                    fmt::format("HEAD changes the tags: [{}] -> [{}]", fmt::join(base.tags, ", "),
                                fmt::join(head.tags, ", "))));
  }
  if (findings.size() == before && base.fingerprint != head.fingerprint) {
    findings.push_back(of_scenario(base, Severity::note,
                                   "HEAD changes its steps; both builds were compared on BASE's"));
  }
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
  const bool of_numbers = entry.what == "time" || metric_named(entry.what);
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

std::string_view name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::scenario:
      return "scenario";
    case FindingKind::counts:
      return "counts";
    case FindingKind::losses:
      return "losses";
    case FindingKind::time:
      return "time";
    case FindingKind::assertion:
      return "assertion";
  }
  return "";
}

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::blocks:
      return "blocks";
    case Severity::undecided:
      return "undecided";
    case Severity::not_gated:
      return "not gated";
    case Severity::failed:
      return "failed";
    case Severity::note:
      return "note";
  }
  return "";
}

std::vector<Finding> compare_counts(const CountedPair& pair) {
  std::vector<Finding> findings;
  const Compared compared{pair, findings};
  const std::set<std::string> by_plan =
      compared.compare(pair.base.planned, pair.head.planned, false);
  compared.compare(pair.base.traced, pair.head.traced, true, by_plan);
  if (pair.base.losses != pair.head.losses) {
    const auto differing =
        std::ranges::mismatch(pair.base.losses, pair.head.losses).in1 - pair.base.losses.begin();
    findings.push_back(
        {.kind = FindingKind::losses,
         .severity = Severity::blocks,
         .workload = pair.workload,
         .what = "losses",
         .words = fmt::format("the loss of step {} differs: not the same step", differing)});
  }
  compared.add_other_gradients();
  if (pair.base.traced.empty() != pair.head.traced.empty()) {
    compared.add_unknown("trace", fmt::format("only {} has a trace of it: {}{}",
                                              pair.head.traced.empty() ? "BASE" : "HEAD",
                                              pair.base.untraced, pair.head.untraced));
  }
  return findings;
}

std::vector<Finding> compare_workloads(const Introduction& both) {
  std::vector<Finding> findings;
  const auto add = [&](Severity severity, const std::string& workload, std::string words) {
    findings.push_back({.kind = FindingKind::scenario,
                        .severity = severity,
                        .workload = workload,
                        .what = "workload",
                        .words = std::move(words)});
  };
  const auto has = [](const std::vector<std::string>& workloads, const std::string& workload) {
    return std::ranges::find(workloads, workload) != workloads.end();
  };
  for (const auto list : {&Hello::workloads, &Hello::planned}) {
    for (const std::string& workload : both.base.*list) {
      if (!has(both.head.*list, workload))
        add(Severity::not_gated, workload, "HEAD does not run it, and BASE does");
    }
    for (const std::string& workload : both.head.*list) {
      if (!has(both.base.*list, workload))
        add(Severity::note, workload, "new in HEAD: nothing to compare");
    }
  }
  for (const LeftOut& left : both.base.left_out)
    add(Severity::note, left.scenario, fmt::format("cannot be timed here: {}", left.why));
  return findings;
}

std::vector<Finding> compare_scenarios(std::span<const Scenario> base,
                                       std::span<const Scenario> head,
                                       const std::map<std::string, std::string>& unread) {
  std::vector<Finding> findings;
  for (const Scenario& before : base) {
    const auto after = std::ranges::find(head, before.name, &Scenario::name);
    if (after != head.end()) {
      compare_scenario(before, *after, findings);
    } else if (const auto why = unread.find(before.name); why != unread.end()) {
      findings.push_back(of_scenario(
          before, Severity::blocks,
          fmt::format("HEAD changes it in a way that this build cannot read: {}", why->second)));
    } else {
      findings.push_back(of_scenario(before, Severity::blocks, "HEAD removes it"));
    }
  }
  for (const Scenario& after : head) {
    if (std::ranges::find(base, after.name, &Scenario::name) == base.end()) {
      findings.push_back(
          of_scenario(after, Severity::note, "new in HEAD: nothing to compare it with"));
    }
  }
  return findings;
}

std::vector<Finding> findings_of(const ComparisonVerdict& comparison,
                                 std::span<const CountedPair> pairs) {
  std::vector<Finding> findings;
  if (comparison.slower_together) findings.push_back(together(comparison));
  for (const WorkloadVerdict& workload : comparison.workloads) {
    if (workload.outcome == Outcome::passes) continue;
    if (comparison.slower_together && workload.outcome == Outcome::undecided) continue;
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
    if (const CountedPair* pair = pair_of(pairs, workload.name))
      finding.mechanism = parts_that_grew(pair->base, pair->head);
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::string_view outcome_in_words(const HeadAssertion& assertion) {
  return assertion.outcome ? in_words(*assertion.outcome) : "broken";
}

std::vector<Finding> findings_of(std::span<const HeadAssertion> assertions) {
  std::vector<Finding> findings;
  for (const HeadAssertion& assertion : assertions) {
    if (assertion.outcome == Outcome::passes) continue;
    findings.push_back(
        {.kind = FindingKind::assertion,
         .severity = severity_of(assertion.outcome),
         .workload = assertion.scenario,
         .what = assertion.name,
         .words = fmt::format("{}: {}{}", outcome_in_words(assertion), assertion.reason,
                              assertion.out_of_reach ? "; widen the limit" : ""),
         .place = assertion.place,
         .outcome = assertion.outcome,
         .out_of_reach = assertion.out_of_reach});
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
      if (!speaks_of(entry, workload, "time")) continue;
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
