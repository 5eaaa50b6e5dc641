// SPDX-License-Identifier: MIT
// Tests docs/claims.md, which lists for each claim of the articles the assertions that decide it,
// or why there is none. All names in it exist, and no scenario that answers an article is missing.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

namespace fs = std::filesystem;

const fs::path source = STEPGATE_SOURCE_DIR;

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
  for (std::string line; std::getline(lines, line);) {
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

}  // namespace
}  // namespace stepgate
