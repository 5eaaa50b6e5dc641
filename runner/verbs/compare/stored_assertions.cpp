// SPDX-License-Identifier: MIT
#include "verbs/compare/stored_assertions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/files/temporary_folder.h"
#include "base/text/text_stream.h"
#include "base/toml/toml_text.h"
#include "judge/judge.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/bases.h"

namespace stepgate {
namespace {

// The prefix of the assertions' names: "as-stored-0-fix-time", of the first point of a sweep.
constexpr std::string_view mark = "as-stored-";
constexpr std::string_view time_name = "time";

// Arithmetic must be equal, since less of it is another step; all other metrics must not increase.
std::string_view relation_of(Metric metric) {
  return metric == Metric::flops_per_step ? "==" : "<=";
}

bool is_compared(const PlanFacts& facts, Metric metric) {
  return can_be_stored(metric) && facts.counts.contains(metric) &&
         !facts.may_differ.contains(metric);
}

// `point` is the scenario's index among those of its file, and `condition` chooses it there.
std::string assertions_of(const StepPlan& plan, double margin, std::size_t point,
                          const std::string& condition) {
  const PlanFacts facts = facts_of(plan);
  const auto line = [&](std::string_view name, const std::string& assertion) {
    return fmt::format("{} = {}\n",
                       toml_string(fmt::format("{}{}-{}-{}", mark, point, plan.variant, name)),
                       toml_string(assertion + condition));
  };
  std::string text = line(time_name, fmt::format("{0}.step_ms_mean <= {1:.6g} * "
                                                 "stored.{0}.step_ms_mean",
                                                 plan.variant, 1 + margin));
  for (const MetricRow& row : metric_table()) {
    if (!is_compared(facts, row.metric)) continue;
    text += line(row.name, fmt::format("{0}.{1} {2} stored.{0}.{1}", plan.variant, row.name,
                                       relation_of(row.metric)));
  }
  return text;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

// The kind, workload and name of a number that an assertion holds against stored runs.
struct StoredNumber {
  FindingKind kind = FindingKind::counts;
  std::string workload;
  std::string what;
};

// nullopt for the scenario's own assertions.
std::optional<StoredNumber> stored_number(const std::string& scenario,
                                          const std::string& assertion) {
  if (!assertion.starts_with(mark)) return std::nullopt;
  const std::string rest = assertion.substr(assertion.find('-', mark.size()) + 1);
  const std::size_t end = rest.rfind('-');
  const std::string what = rest.substr(end + 1);
  return StoredNumber{.kind = what == time_name ? FindingKind::time : FindingKind::counts,
                      .workload = scenario + "/" + rest.substr(0, end),
                      .what = what};
}

}  // namespace

StoredAssertions::StoredAssertions(std::span<const Scenario> scenarios, double margin,
                                   std::uint64_t seed) {
  while (!scenarios.empty()) {
    const Scenario& first = scenarios.front();
    const auto same_file = [&](const Scenario& one) { return one.file == first.file; };
    const auto points =
        scenarios.first(static_cast<std::size_t>(std::ranges::count_if(scenarios, same_file)));
    scenarios = scenarios.subspan(points.size());
    if (!is_planned_only(first) && !lacks_a_value(first)) extend(points, margin, seed);
  }
}

void StoredAssertions::extend(std::span<const Scenario> points, double margin, std::uint64_t seed) {
  const Scenario& first = points.front();
  const std::filesystem::path file = folder_.path() / (name_of_file(first) + ".toml");
  TextStream out;
  // A path is UTF-8, and a JSON string is a valid TOML string.
  out << "extends = " << nlohmann::json(std::filesystem::absolute(first.file).string()).dump()
      << "\n[expect]\n";
  for (std::size_t point = 0; point < points.size(); ++point) {
    const Scenario& scenario = points[point];
    const std::string condition =
        scenario.point ? fmt::format(" when {} == {}", scenario.point->knob, scenario.point->value)
                       : "";
    const std::vector<StepPlan> plans = build_step_plans(scenario, seed);
    for (std::size_t index = 0; index < plans.size(); ++index) {
      const double own = scenario.variants[index].gate.margin.value_or(0);
      out << assertions_of(plans[index], std::max(own, margin), point, condition);
    }
    extended_.push_back({file, scenario});
  }
  if (!write_temporary_file(file, out.str()))
    throw std::system_error(errno, std::generic_category(), "write a temporary scenario");
  files_.push_back(file);
  bases_ += root_of_bases(first.file).string() + ':';
}

void StoredAssertions::translate(Finding& finding) const {
  const auto found = std::ranges::find_if(
      extended_, [&](const Extended& one) { return one.scenario.name == finding.workload; });
  if (found == extended_.end()) return;
  replace_all(finding.words, found->file.string(), found->scenario.file);
  if (finding.place.file == found->file.string()) finding.place = {};
  if (const auto number = stored_number(finding.workload, finding.what)) {
    finding.kind = number->kind;
    finding.workload = number->workload;
    finding.what = number->what;
  }
}

void translate(HeadAssertion& assertion, std::span<const Scenario> scenarios) {
  const auto scenario = std::ranges::find(scenarios, assertion.scenario, &Scenario::name);
  const auto number = stored_number(assertion.scenario, assertion.name);
  if (scenario == scenarios.end() || !number) return;
  if (!assertion.place.file.empty())
    replace_all(assertion.reason, assertion.place.file, scenario->file);
  const std::string variant = number->workload.substr(scenario->name.size() + 1);
  const auto described = std::ranges::find(scenario->variants, variant, &Variant::name);
  assertion.place =
      described == scenario->variants.end() ? Place{scenario->file, 0, 0} : described->place;
  assertion.kind = number->kind;
  assertion.scenario = number->workload;
  assertion.name = number->what;
}

}  // namespace stepgate
