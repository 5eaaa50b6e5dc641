// SPDX-License-Identifier: MIT
#include "ledger/baseline/acceptance.h"

#include <fmt/format.h>

#include <algorithm>

#include "judge/stored/baseline.h"
#include "judge/stored/stored_reasons.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

constexpr double equal_within = 0.03;

Expectation equal(const std::string& variant, const std::string& copy, double within) {
  Expectation assertion;
  assertion.name = variant;
  assertion.text = fmt::format("'{}' takes as long as a copy of itself", variant);
  assertion.left = {{MetricOf{variant, Metric::step_ms_mean}}};
  assertion.relation = Relation::about;
  assertion.right = {{MetricOf{copy, Metric::step_ms_mean}}};
  assertion.within = within;
  return assertion;
}

}  // namespace

SelfCheck self_check(const Scenario& scenario, const Variant& variant,
                     std::span<const PlannedStep> plans) {
  const StepPlan& plan =
      *std::ranges::find(plans, variant.name, [](const StepPlan& step) { return step.variant; });
  Variant copy = variant;
  copy.name += " again";
  SelfCheck check;
  check.scenario.name = scenario.name;
  check.scenario.file = scenario.file;
  check.scenario.measure = scenario.measure;
  check.scenario.variants = {variant, copy};
  check.scenario.expect = {
      equal(variant.name, copy.name, std::max(equal_within, variant.gate.margin.value_or(0)))};
  check.plans = {plan, plan};
  check.plans.back().variant = copy.name;
  return check;
}

std::optional<std::string> reason_against_storing(const Verdict& run, bool begins_baseline_reset) {
  if (run.broken) return *run.broken;
  if (!run.skipped_because.empty()) return run.skipped_because;
  if (run.rounds < rounds_of_stored_run) return too_few_rounds_reason(run.rounds);
  for (const AssertionVerdict& assertion : run.assertions) {
    const bool of_another_machine =
        assertion.outcome == Outcome::machine_slower ||
        (assertion.stored && assertion.stored->note == StoredNote::machine_is_faster);
    if (assertion.outcome != Outcome::fails && !of_another_machine) continue;
    if (assertion.about_stored_runs && begins_baseline_reset) continue;
    const std::string_view way_out = assertion.about_stored_runs
                                         ? "; if that is meant, --reset TEXT stores it and says why"
                                         : "";
    return fmt::format("{} {}: {} ({}){}", assertion.name, predicate_of(assertion.outcome),
                       assertion.text, assertion.reason, way_out);
  }
  return std::nullopt;
}

std::optional<std::string> reason_against_gate(const Verdict& self_check) {
  if (self_check.broken) return *self_check.broken;
  for (const AssertionVerdict& assertion : self_check.assertions) {
    if (assertion.outcome == Outcome::passes) continue;
    const bool wants_time = assertion.outcome == Outcome::undecided;
    return fmt::format("the gate {} itself: {} {} ({}){}",
                       wants_time ? "cannot tell the step from" : "fails against", assertion.text,
                       predicate_of(assertion.outcome), assertion.reason,
                       wants_time ? "; --budget SECONDS gives it longer" : "");
  }
  return std::nullopt;
}

}  // namespace stepgate
