// SPDX-License-Identifier: MIT
// Tests the table of a sweep, where its curves cross, and that every report for people has it.
#include "report/reported_sweep.h"

#include <gtest/gtest.h>

#include <sstream>

#include "report/testing/reports.h"
#include "report/writers.h"

namespace stepgate {
namespace {

ReportedSweep curves(std::vector<double> numbers, std::vector<std::optional<double>> one,
                     std::vector<std::optional<double>> other) {
  ReportedSweep sweep{.name = "s", .knob = "batch.size", .numbers = std::move(numbers)};
  for (const double number : sweep.numbers) sweep.values.push_back(std::to_string(int(number)));
  sweep.curves = {{"baseline", std::move(one)}, {"fix", std::move(other)}};
  return sweep;
}

using Crossings = std::vector<std::string>;

TEST(ReportedSweep, SaysWhereCurvesCross) {
  EXPECT_EQ(crossings_of(curves({1, 4, 16, 64}, {{100, 400, 1600, 6400}}, {{400, 800, 800, 1600}})),
            (Crossings{"baseline and fix cross between batch.size 4 and 16, at about 8"}));
}

TEST(ReportedSweep, SaysNothingOfCurvesThatMeetOrAreNotKnown) {
  EXPECT_EQ(crossings_of(curves({1, 2, 3}, {100, 100, 100}, {{101, 99, 101}})), Crossings{})
      << "less than 2 % is no difference";
  EXPECT_EQ(crossings_of(curves({1, 2}, {100, std::nullopt}, {{90, 120}})), Crossings{});
  EXPECT_EQ(crossings_of(curves({1, 2}, {{100, 100}}, {{110, 120}})), Crossings{});
  EXPECT_EQ(crossings_of(curves({1, 2, 3}, {{100, 100, 100}}, {{90, 100, 110}})).size(), 1U)
      << "they are equal in between";
}

// A point of which two variants were timed, and one assertion decided.
struct Points {
  std::vector<Scenario> scenarios;
  RunSoFar run;
};

Points points(const std::vector<std::pair<double, double>>& throughputs) {
  Points all;
  std::vector<Verdict> verdicts;
  double size = 1;
  for (const auto& [baseline, fix] : throughputs) {
    Scenario scenario;
    scenario.file = "scenarios/graphs.toml";
    scenario.name = "graphs@batch.size=" + std::to_string(int(size));
    scenario.point = SweepPoint{"batch.size", std::to_string(int(size)), size};
    for (const char* name : {"baseline", "fix"}) {
      scenario.variants.emplace_back();
      scenario.variants.back().name = name;
    }
    scenario.expect.emplace_back();
    scenario.expect.back().name = "faster";
    Verdict verdict;
    verdict.scenario = scenario.name;
    verdict.outcome = Outcome::passes;
    verdict.variants = {{.name = "baseline", .samples_per_second = baseline},
                        {.name = "fix", .samples_per_second = fix}};
    verdict.assertions.emplace_back();
    verdict.assertions.back().name = "faster";
    verdict.assertions.back().outcome = fix > baseline ? Outcome::passes : Outcome::fails;
    all.scenarios.push_back(std::move(scenario));
    verdicts.push_back(std::move(verdict));
    size *= 8;
  }
  all.run = ended_run(verdicts);
  return all;
}

Report report_of(Points& points) {
  points.run.scenarios.clear();
  for (const Scenario& scenario : points.scenarios) points.run.scenarios.push_back(&scenario);
  return report_of(points.run);
}

TEST(ReportedSweep, HasARowForEachPoint) {
  Points all = points({{100, 400}, {800, 1200}, {6400, 5000}});
  const Report report = report_of(all);
  ASSERT_EQ(report.sweeps.size(), 1U);
  EXPECT_EQ(report.sweeps[0].table, (TextTable{{"batch.size", "baseline", "fix", "faster"},
                                               {"1", "100/s", "400/s", "passes"},
                                               {"8", "800/s", "1200/s", "passes"},
                                               {"64", "6400/s", "5000/s", "fails"}}));
  std::ostringstream text;
  print_sweeps(text, report, Style::plain);
  const std::string crossing = "baseline and fix cross between batch.size 8 and 64, at about 29";
  EXPECT_NE(text.str().find(crossing), std::string::npos) << text.str();
  std::ostringstream html;
  write_html(html, report);
  for (const std::string& page : {html.str(), summary_markdown(report)}) {
    EXPECT_NE(page.find("Sweep of graphs"), std::string::npos);
    EXPECT_NE(page.find("at about 29"), std::string::npos);
  }
}

TEST(ReportedSweep, IsNoneOfOnePointOrOfOtherFiles) {
  Points all = points({{100, 400}});
  EXPECT_TRUE(report_of(all).sweeps.empty());
  all = points({{100, 400}, {800, 1200}});
  all.scenarios[1].file = "scenarios/other.toml";
  EXPECT_TRUE(report_of(all).sweeps.empty());
  all = points({{100, 400}, {800, 1200}});
  for (Scenario& scenario : all.scenarios) scenario.point.reset();
  EXPECT_TRUE(report_of(all).sweeps.empty());
}

}  // namespace
}  // namespace stepgate
