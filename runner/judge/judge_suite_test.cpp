// SPDX-License-Identifier: MIT
// Tests closed testing over the comparisons of a suite.
#include "judge/judge_suite.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace stepgate {
namespace {

constexpr double suite_alpha = 0.01;

Verdict scenario_with(const std::string& name, const std::vector<double>& evidence) {
  Verdict verdict;
  verdict.scenario = name;
  for (const double against : evidence) {
    AssertionVerdict line;
    line.name = "line" + std::to_string(verdict.assertions.size() + 1);
    line.outcome = Outcome::undecided;
    line.timed.emplace();
    line.timed->evidence_against = against;
    verdict.assertions.push_back(std::move(line));
  }
  return verdict;
}

// Applies the definition: a line fails when every set that contains it has a mean beyond the
// threshold.
std::vector<bool> by_all_sets(const std::vector<double>& evidence, double threshold,
                              const std::vector<double>& weights) {
  std::vector<bool> failed(evidence.size(), true);
  for (unsigned set = 1; set < 1U << evidence.size(); ++set) {
    double sum = 0;
    double all = 0;
    for (std::size_t line = 0; line < evidence.size(); ++line) {
      if (!(set >> line & 1U)) continue;
      sum += weights[line] * evidence[line];
      all += weights[line];
    }
    if (sum >= threshold * all) continue;
    for (std::size_t line = 0; line < evidence.size(); ++line) {
      if (set >> line & 1U) failed[line] = false;
    }
  }
  return failed;
}

// Returns an e-value of a true line: its mean is 1 and its tail is heavy.
double of_a_true_line(Random& random) {
  constexpr double spread = 2;
  return std::exp(spread * random.normal() - spread * spread / 2);
}

TEST(JudgeSuite, FailsTheLinesThatEverySetOfLinesRefutes) {
  Random random(7);
  const double threshold = 1 / (suite_alpha * 0.9);
  int failed = 0;
  for (int suite = 0; suite < 2000; ++suite) {
    std::vector<double> evidence(2 + random.below(6));
    for (double& value : evidence) value = std::exp(3 + 2.5 * random.normal());
    std::vector<double> weights(evidence.size(), 1);
    const std::vector<bool> expected = by_all_sets(evidence, threshold, weights);
    EXPECT_EQ(failed_together(evidence, suite_alpha), expected);
    failed += static_cast<int>(std::count(expected.begin(), expected.end(), true));
    for (double& weight : weights) weight = 0.1 + random.uniform();
    EXPECT_EQ(failed_together(evidence, suite_alpha, weights),
              by_all_sets(evidence, threshold, weights));
  }
  EXPECT_GT(failed, 300);
}

TEST(JudgeSuite, FailsALineWithTheEvidenceOfOneWhateverTheOthersSay) {
  for (const std::int64_t lines : {1, 2, 75}) {
    std::vector<double> evidence(static_cast<std::size_t>(lines), 0.0);
    evidence.front() = 1.0001 * evidence_that_refutes_a_line(lines, suite_alpha);
    EXPECT_TRUE(failed_together(evidence, suite_alpha).front()) << lines;
    evidence.front() *= 0.999;
    EXPECT_FALSE(failed_together(evidence, suite_alpha).front()) << lines;
  }
}

TEST(JudgeSuite, FailsTrueLinesOrATrueSuiteNoMoreOftenThanItSays) {
  Random random(11);
  constexpr int suites = 20'000;
  int wrong = 0;
  for (int index = 0; index < suites; ++index) {
    std::vector<Verdict> suite;
    for (int scenario = 0; scenario < 6; ++scenario) {
      const double shared = of_a_true_line(random);  // correlates the lines of a scenario
      suite.push_back(scenario_with("s", {shared, shared, of_a_true_line(random)}));
    }
    const SuiteVerdict verdict = judge_suite(suite, suite_alpha);
    wrong += verdict.failed || !verdict.failed_among_others.empty();
  }
  const double most =
      suites * suite_alpha + 3 * std::sqrt(suites * suite_alpha * (1 - suite_alpha));
  EXPECT_LE(wrong, most);
  EXPECT_GT(wrong, 0);
}

TEST(JudgeSuite, SeesManySmallSlowdownsOfWhichNoneFailsAlone) {
  const std::vector<Verdict> suite(30, scenario_with("s", {2}));
  const SuiteVerdict verdict = judge_suite(suite, suite_alpha);
  EXPECT_TRUE(verdict.failed);
  EXPECT_TRUE(verdict.failed_among_others.empty());
  EXPECT_DOUBLE_EQ(verdict.mean_evidence, 2);
  EXPECT_NEAR(std::log(verdict.product_evidence), 30 * std::log(1.5), 1e-9);
  EXPECT_FALSE(judge_suite(std::vector<Verdict>(30, scenario_with("s", {1})), suite_alpha).failed);
}

TEST(JudgeSuite, NamesALineThatFallsAmongTheOthersOnly) {
  const double alone = evidence_that_refutes_a_line(3, suite_alpha);
  const std::vector<Verdict> suite{scenario_with("a", {alone / 2, 200}), scenario_with("b", {200})};
  EXPECT_EQ(judge_suite(suite, suite_alpha).failed_among_others,
            (std::vector<std::string>{"a.line1", "a.line2", "b.line1"}));
}

TEST(JudgeSuite, CountsNothingAgainstALineInDoubtAndLeavesBrokenScenariosOut) {
  std::vector<Verdict> suite{scenario_with("a", {1e6}), scenario_with("b", {1e6})};
  suite[0].assertions.front().in_doubt = true;
  suite[1].broken = "losses disagree";
  const SuiteVerdict verdict = judge_suite(suite, suite_alpha);
  EXPECT_EQ(verdict.lines, 1);
  EXPECT_EQ(verdict.mean_evidence, 0);
  EXPECT_FALSE(verdict.failed);
}

}  // namespace
}  // namespace stepgate
