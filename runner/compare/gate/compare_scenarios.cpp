// SPDX-License-Identifier: MIT
#include "compare/gate/compare_scenarios.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/text/units.h"

namespace stepgate {
namespace {

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

}  // namespace

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

}  // namespace stepgate
