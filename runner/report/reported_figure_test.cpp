// SPDX-License-Identifier: MIT
#include "report/reported_figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/testing/reports.h"
#include "report/writers.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

const ArticleFigure speed_up{.low = 1.29, .high = 1.29};
const ArticleFigure slower{.low = 1.05, .high = 1.15};
const ArticleFigure less{.low = 0.5, .high = 0.7};

TEST(ArticleFigure, HoldsWhereItLiesInTheInterval) {
  EXPECT_EQ(answer_to(speed_up, {1.28, 1.30}), FigureAnswer::holds);
  EXPECT_EQ(answer_to(speed_up, {1.29, 1.30}), FigureAnswer::holds);
  EXPECT_EQ(answer_to(slower, {1.1, 1.12}), FigureAnswer::holds) << "inside of the figure";
  EXPECT_EQ(answer_to(slower, {0.9, 1.05}), FigureAnswer::holds);
  EXPECT_EQ(answer_to(less, {0.6, 0.6}), FigureAnswer::holds) << "a count";
}

TEST(ArticleFigure, IsExceededByALargerEffect) {
  EXPECT_EQ(answer_to(speed_up, {1.291, 1.4}), FigureAnswer::exceeded);
  EXPECT_EQ(answer_to(slower, {1.151, 1.2}), FigureAnswer::exceeded);
  EXPECT_EQ(answer_to(less, {0.499, 0.499}), FigureAnswer::exceeded) << "more is saved";
}

TEST(ArticleFigure, IsRefutedByASmallerEffectOrTheOpposite) {
  EXPECT_EQ(answer_to(speed_up, {1.2, 1.289}), FigureAnswer::refuted);
  EXPECT_EQ(answer_to(slower, {0.9, 1.049}), FigureAnswer::refuted);
  EXPECT_EQ(answer_to(less, {0.701, 0.701}), FigureAnswer::refuted);
  EXPECT_EQ(answer_to(less, {1.1, 1.2}), FigureAnswer::refuted);
}

Scenario scenario_that_says(const std::string& says) {
  return parse_scenario(
      "claim = \"c\"\nmodel.kind = \"spin\"\n[variant.bad]\nsync.where = \"step\"\n[variant.fix]\n"
      "[expect]\n"
      "faster = \"1 * fix.samples_per_s >= 1.05 * bad.samples_per_s\"\n"
      "saves = \"fix.peak_live <= 0.8 * bad.peak_live\"\n"
      "[article]\n"
      "faster = { experiment = \"a wait\", says = " +
          says +
          " }\n"
          "saves = { experiment = \"memory\", says = [0.5, 0.7] }\n",
      "a.toml");
}

Verdict verdict_of(double ratio, double low, double high) {
  AssertionVerdict faster{.name = "faster", .evidence = Evidence::timed};
  faster.outcome = Outcome::passes;
  faster.left = 1000 * ratio;
  faster.right = 1050;
  faster.estimate = {
      .value = ratio, .interval = RatioInterval{low, high}, .limit = 1.05, .unit = {}};
  AssertionVerdict saves{.name = "saves", .evidence = Evidence::plan};
  saves.outcome = Outcome::passes;
  saves.left = 75.0 * (1 << 20);
  saves.right = 80.0 * (1 << 20);
  return {.scenario = "one", .assertions = {faster, saves}};
}

TEST(ReportedFigures, HaveBothSidesAndTheRatioWithoutItsLimit) {
  const Scenario scenario = scenario_that_says("1.29");
  const auto rows = figure_table(reported_figures(verdict_of(1.36, 1.35, 1.37), &scenario));
  const std::vector<std::vector<std::string>> expected{
      {"experiment", "bad", "good", "ratio", "article", "here", "assertion"},
      {"a wait", "bad 1000/s", "fix 1360/s", "1.36x [1.35x, 1.37x]", "1.29x", "exceeded",
       "one.faster"},
      {"memory", "bad 100 MiB", "fix 75 MiB", "0.75x, counted", "0.5x to 0.7x", "refuted",
       "one.saves"}};
  EXPECT_EQ(rows, expected);
}

// Five rounds that agree decide an assertion and close no confidence sequence.
TEST(ReportedFigures, HaveTheRangeOfRoundsThatAreTooFewForAnInterval) {
  const Scenario scenario = scenario_that_says("1.29");
  Verdict verdict = verdict_of(1.2, 1.1, 1.3);
  AssertionVerdict& faster = verdict.assertions[0];
  faster.estimate->interval.reset();
  faster.timed.emplace().contrasts = {std::log(1.21 / 1.05), std::log(1.19 / 1.05)};
  const ReportedFigure figure = reported_figures(verdict, &scenario)[0];
  ASSERT_TRUE(figure.interval);
  EXPECT_NEAR(figure.interval->low, 1.19, 1e-9);
  EXPECT_NEAR(figure.interval->high, 1.21, 1e-9);
  EXPECT_EQ(figure.answer, FigureAnswer::refuted);
}

TEST(ReportedFigures, AreOpenWhereNothingIsKnownOrTheRegimeIsAnother) {
  const Scenario scenario = scenario_that_says("1.36");
  Verdict verdict = verdict_of(1.36, 1.35, 1.37);
  EXPECT_EQ(reported_figures(verdict, &scenario)[0].answer, FigureAnswer::holds);
  verdict.assertions[0].outcome = Outcome::skipped;
  verdict.assertions[1].left.reset();
  for (const ReportedFigure& figure : reported_figures(verdict, &scenario)) {
    EXPECT_EQ(figure.answer, FigureAnswer::open);
    EXPECT_EQ(figure.bad + figure.good, "");
  }
  EXPECT_TRUE(reported_figures(verdict, nullptr).empty());
}

TEST(ReportedFigures, AreInTheTextThePageAndTheJsonOfARun) {
  const Scenario scenario = scenario_that_says("1.29");
  const Verdict verdict = verdict_of(1.36, 1.35, 1.37);
  RunSoFar run = ended_run({});
  run.decided.push_back(reported_scenario(verdict, &scenario, UndecidedPolicy::skip));
  const Report report = report_of(run);
  std::ostringstream text;
  print_figures(text, report, Style::plain);
  std::ostringstream page;
  write_html(page, report);
  std::ostringstream json;
  write_json(json, report.run, report.scenarios.front(), {}, {});
  for (const std::string& written : {text.str(), page.str()}) {
    for (const char* words : {"a wait", "1.36x [1.35x, 1.37x]", "exceeded", "one.faster"})
      EXPECT_NE(written.find(words), std::string::npos) << words << "\n" << written;
  }
  const nlohmann::json figure = nlohmann::json::parse(json.str()).at("article").at(0);
  EXPECT_EQ(figure.at("answer"), "exceeded");
  EXPECT_EQ(figure.at("says"), nlohmann::json({1.29, 1.29}));
  EXPECT_EQ(figure.at("interval"), nlohmann::json({1.35, 1.37}));
  std::ostringstream none;
  print_figures(none, report_of(ended_run({verdict})), Style::plain);
  EXPECT_EQ(none.str(), "") << "a run without figures";
}

TEST(ReportedFigures, DecideNothing) {
  EXPECT_EQ(scenario_that_says("1.29").fingerprint, scenario_that_says("5").fingerprint);
}

}  // namespace
}  // namespace stepgate
