// SPDX-License-Identifier: MIT
#include "verbs/counted_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <iostream>
#include <vector>

#include "base/files/line_file.h"
#include "base/text/text_stream.h"
#include "judge/judge_suite.h"
#include "program/count_steps.h"
#include "report/writers.h"
#include "scenario/assertions/parse_expectation.h"
#include "verbs/outputs.h"

namespace stepgate {
namespace {

std::string counted_metrics() {
  std::string names{row_of(Metric::host_waits_per_step).name};
  for (const CallCountRow& row : call_count_table()) {
    if (row.metric) names += fmt::format(", {}", row_of(*row.metric).name);
  }
  return names;
}

}  // namespace

void add_expectations(const Arguments& arguments, std::string_view verb, Scenario& scenario) {
  std::vector<std::string_view> variants;
  for (const Variant& variant : scenario.variants) variants.push_back(variant.name);
  std::vector<Diagnostic> faults;
  for (const std::string& text : arguments.attach.expect) {
    const std::string name = fmt::format("expect_{}", scenario.expect.size() + 1);
    auto expectation = parse_expectation(name, text, {"--expect", 0, 0}, variants, faults);
    if (!expectation) continue;
    for (const MetricOf& metric : metrics_in(*expectation)) {
      if (value_of(CallCounts{}, metric.metric)) continue;
      faults.push_back({{"--expect", 0, 0},
                        fmt::format("{} does not count {}", verb, row_of(metric.metric).name),
                        "it counts " + counted_metrics()});
    }
    scenario.expect.push_back(std::move(*expectation));
  }
  if (!faults.empty()) throw RequestError(std::move(faults));
}

RunSoFar counted_run(const Arguments& arguments, const Scenario& scenario) {
  RunSoFar so_far{.run = run_info_of(arguments, std::filesystem::current_path() / "x", 0),
                  .undecided = arguments.undecided,
                  .scenarios = {&scenario}};
  so_far.run.scenarios = 1;
  return so_far;
}

Report report_counted(const Arguments& arguments, std::string verb, RunSoFar so_far,
                      Verdict verdict, const ReportFiles& files) {
  so_far.suite = judge_suite(std::array{verdict}, JudgeSettings().suite_alpha);
  so_far.decided.push_back(reported_scenario(std::move(verdict), so_far.scenarios.front(),
                                             arguments.undecided, so_far.run));
  so_far.ended = true;
  Report report = report_of(so_far);
  report.verb = std::move(verb);
  const ReportedScenario& decided = report.scenarios.back();
  const Style style = style_of(STDOUT_FILENO);
  print_fitted(std::cout, style, [&](std::ostream& out) { print_program(out, decided, style); });
  if (!arguments.json.empty()) {
    TextStream line;
    Measurement none;
    none.planned_only = true;
    write_json(line, report.run, decided, none, {});
    write_output([&] { LineFile(arguments.json).append(line.str()); });
  }
  files.end(report);
  return report;
}

}  // namespace stepgate
