// SPDX-License-Identifier: MIT
// Tests docs/claims.md, which lists for each claim of the articles the assertions that decide it,
// or why there is none. All names in it exist, and no scenario that answers an article is missing.
// Its table of figures is that of the newest stored run.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "report/reported_figure.h"
#include "scenario/assertions/parse_expectation.h"
#include "scenario/read/read_scenario.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

namespace fs = std::filesystem;

const fs::path source = STEPGATE_SOURCE_DIR;

// The generated lines of the page stand between these.
const std::string figures_begin = "<!-- figures -->";
const std::string figures_end = "<!-- end of figures -->";

struct Suite {
  std::map<std::string, std::set<std::string>> assertions;  // of each scenario
  std::set<std::string> answer_articles;                    // scenarios whose source names one
};

// The titles of the articles, as scenarios write them.
const std::vector<std::string> articles = {
    "'CUDA Memory Management Mistakes That Quietly Kill Training Throughput'",
    "'PyTorch Performance Tuning'", "'CUDA Memory Management for Deep Learning'",
    "'Torch CUDA Memory: Fix Leaks Before They Kill'"};

Suite suite() {
  Suite found;
  for (const char* folder : {"scenarios", "scenarios/ranks"}) {
    for (const auto& entry : fs::directory_iterator(source / folder)) {
      if (entry.path().extension() != ".toml") continue;
      const Scenario scenario = read_scenario(entry.path());
      std::set<std::string>& assertions = found.assertions[scenario.name];
      for (const Expectation& expectation : scenario.expect) assertions.insert(expectation.name);
      for (const std::string& article : articles)
        if (scenario.source.find(article) != std::string::npos)
          found.answer_articles.insert(scenario.name);
    }
  }
  return found;
}

// Returns the errors of the page.
std::vector<std::string> problems_of(const std::string& page, const Suite& suite) {
  std::vector<std::string> problems;
  std::set<std::string> named;
  std::istringstream lines(page);
  const std::regex row(R"(\| (.+) \| (.+) \| (.+) \|)");
  const std::regex assertion("`([a-z0-9_]+)\\.([a-z0-9_]+)`");
  const std::regex heading("claim|-+");
  for (std::string line; std::getline(lines, line) && line != figures_begin;) {
    std::smatch cells;
    if (!line.starts_with("|") || line.starts_with("|---")) continue;
    if (!std::regex_match(line, cells, row)) {
      problems.push_back("not three cells: " + line);
      continue;
    }
    if (std::regex_match(cells.str(1), heading)) continue;
    const std::string assertions = cells.str(2);
    int found = 0;
    for (auto at = std::sregex_iterator(assertions.begin(), assertions.end(), assertion);
         at != std::sregex_iterator(); ++at, ++found) {
      const auto scenario = suite.assertions.find(at->str(1));
      if (scenario == suite.assertions.end() || !scenario->second.contains(at->str(2))) {
        problems.push_back("no such assertion: " + at->str());
      }
      named.insert(at->str(1));
    }
    if (found == 0 && (assertions != "none" || cells.str(3).size() < 20)) {
      problems.push_back("neither an assertion nor a reason: " + line);
    }
  }
  for (const std::string& scenario : suite.answer_articles)
    if (!named.contains(scenario)) problems.push_back("not on the page: " + scenario);
  return problems;
}

std::string page() {
  std::ifstream file(source / "docs" / "claims.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Claims, NameAssertionsThatThereAreOrSayWhyNoneDecides) {
  const Suite there_is = suite();
  EXPECT_GE(there_is.answer_articles.size(), 45U);
  for (const std::string& problem : problems_of(page(), there_is)) ADD_FAILURE() << problem;
}

TEST(Claims, AreRefusedWhereTheSuiteHasAnotherAssertion) {
  Suite other = suite();
  EXPECT_EQ(other.assertions["sync_every_step"].erase("faster"), 1U);
  EXPECT_EQ(problems_of(page(), other),
            std::vector<std::string>{"no such assertion: `sync_every_step.faster`"});
}

TEST(Claims, AreRefusedWhereAScenarioOfAnArticleIsMissing) {
  Suite other = suite();
  other.answer_articles.insert("of_another_claim");
  EXPECT_EQ(problems_of(page(), other),
            std::vector<std::string>{"not on the page: of_another_claim"});
}

TEST(Claims, AreRefusedWithoutAnAssertionAndAReason) {
  const std::string unexplained = "| a claim | none | - |";
  EXPECT_EQ(problems_of(unexplained, {}),
            std::vector<std::string>{"neither an assertion nor a reason: " + unexplained});
  const std::string two_cells = "| a claim | none |";
  EXPECT_EQ(problems_of(two_cells, {}), std::vector<std::string>{"not three cells: " + two_cells});
}

using Json = nlohmann::json;

std::optional<double> number_in(const Json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

// The parts of a stored assertion that figures are made of.
AssertionVerdict stored_assertion(const Json& stored) {
  AssertionVerdict assertion{.name = stored["name"], .text = stored["text"]};
  assertion.evidence = stored["evidence"] == "timed"    ? Evidence::timed
                       : stored["evidence"] == "traced" ? Evidence::traced
                                                        : Evidence::plan;
  assertion.outcome = stored["outcome"] == "skipped" ? Outcome::skipped : Outcome::passes;
  assertion.left = number_in(stored["left"]);
  assertion.right = number_in(stored["right"]);
  if (stored["estimate"].is_null()) return assertion;
  assertion.estimate.emplace().value = stored["estimate"]["value"];
  if (const Json& interval = stored["estimate"]["interval"]; !interval.is_null())
    assertion.estimate->interval = {.low = interval[0], .high = interval[1]};
  if (stored["timed"].is_null()) return assertion;
  assertion.timed.emplace().contrasts = stored["timed"]["contrasts"].get<std::vector<double>>();
  return assertion;
}

// The scenario with the limits of the day on which the run was stored.
Scenario as_stored(Scenario scenario, const Verdict& verdict) {
  std::vector<std::string_view> variants;
  for (const Variant& variant : scenario.variants) variants.push_back(variant.name);
  for (Expectation& now : scenario.expect) {
    const auto then = std::ranges::find(verdict.assertions, now.name, &AssertionVerdict::name);
    if (then == verdict.assertions.end()) continue;
    std::vector<Diagnostic> wrong;
    const auto parsed = parse_expectation(now.name, then->text, {}, variants, wrong);
    if (parsed && metrics_in(*parsed) == metrics_in(now)) now = *parsed;
  }
  return scenario;
}

// The rows of a stored run, one scenario a line.
std::vector<ReportedFigure> figures_of(std::istream& run, const fs::path& scenarios) {
  std::vector<ReportedFigure> figures;
  for (std::string line; std::getline(run, line);) {
    const Json stored = Json::parse(line);
    if (!stored.contains("expect")) continue;
    Verdict verdict{.scenario = stored["scenario"]};
    const fs::path file = scenarios / (verdict.scenario + ".toml");
    if (!fs::exists(file)) continue;
    for (const Json& assertion : stored["expect"])
      verdict.assertions.push_back(stored_assertion(assertion));
    const Scenario scenario = as_stored(read_scenario(file), verdict);
    std::ranges::move(reported_figures(verdict, &scenario), std::back_inserter(figures));
  }
  return figures;
}

std::string markdown_of(std::span<const ReportedFigure> figures, const std::string& run) {
  std::string text = fmt::format("The run is that of {}.\n\n", run);
  const auto rows = figure_table(figures);
  for (const auto& row : rows) {
    text += fmt::format("| {} |\n", fmt::join(row, " | "));
    if (&row == &rows.front()) {
      for (std::size_t column = 0; column < row.size(); ++column) text += "|---";
      text += "|\n";
    }
  }
  return text;
}

fs::path newest_run() {
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(source / "baselines" / "nvidia-h200" / "suite"))
    if (entry.path().extension() == ".json") newest = std::max(newest, entry.path());
  return newest;
}

// The page with other lines between the two marks.
std::string page_with(const std::string& figures) {
  const std::string all = page();
  const std::size_t begin = all.find(figures_begin + "\n");
  const std::size_t end = all.find(figures_end + "\n");
  EXPECT_NE(end, std::string::npos);
  return all.substr(0, begin) + figures_begin + "\n" + figures + all.substr(end);
}

TEST(Figures, AreThoseOfTheNewestStoredRun) {
  const fs::path run = newest_run();
  std::ifstream lines(run);
  const std::vector<ReportedFigure> figures = figures_of(lines, source / "scenarios");
  EXPECT_GE(figures.size(), 8U);
  expect_golden(source / "docs" / "claims.md",
                page_with(markdown_of(figures, run.stem().string())));
}

// A stored run with another ratio makes another page.
TEST(Figures, FollowTheStoredRun) {
  const auto answer_for = [](double ratio) {
    const Json one{{"name", "faster"},
                   {"text", "fix.samples_per_s >= 1.1 * baseline.samples_per_s"},
                   {"evidence", "timed"},
                   {"outcome", "passes"},
                   {"left", 100 * ratio},
                   {"right", 110},
                   {"estimate", {{"value", ratio}, {"interval", {ratio - 0.01, ratio + 0.01}}}},
                   {"timed", nullptr}};
    std::istringstream run(
        Json{{"scenario", "sync_every_step"}, {"expect", Json::array({one})}}.dump());
    const auto figures = figures_of(run, source / "scenarios");
    EXPECT_EQ(figures.size(), 1U);
    EXPECT_EQ(figures.at(0).bad, "baseline 100/s");
    return figures.at(0).answer;
  };
  EXPECT_EQ(answer_for(1.27), FigureAnswer::refuted);
  EXPECT_EQ(answer_for(1.29), FigureAnswer::holds);
  EXPECT_EQ(answer_for(1.31), FigureAnswer::exceeded);
}

}  // namespace
}  // namespace stepgate
