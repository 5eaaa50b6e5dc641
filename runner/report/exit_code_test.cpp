// SPDX-License-Identifier: MIT
// Tests the table of docs/exit_codes.md.
#include "report/exit_code.h"

#include <gtest/gtest.h>

#include <array>

#include "report/testing/reports.h"

namespace stepgate {
namespace {

constexpr auto skip = UndecidedPolicy::skip;

Verdict ended(Outcome outcome) {
  Verdict verdict;
  verdict.outcome = outcome;
  return verdict;
}

Verdict broken(Outcome outcome) {
  Verdict verdict = ended(outcome);
  verdict.broken = "losses disagree";
  return verdict;
}

Verdict failed(Outcome outcome) {
  Verdict verdict = ended(outcome);
  verdict.failed = "no memory";
  return verdict;
}

int status(const std::vector<Verdict>& verdicts, UndecidedPolicy policy = skip,
           const SuiteVerdict& suite = {}) {
  RunSoFar run = ended_run(verdicts, policy);
  run.suite = suite;
  return status_of(*report_of(run).code);
}

TEST(ExitCode, TellsTheGravestOfTwo) {
  constexpr std::array from_gravest{1, 3, 2, 4, 77, 0};
  for (std::size_t one = 0; one < from_gravest.size(); ++one) {
    for (std::size_t other = one; other < from_gravest.size(); ++other) {
      const auto graver = static_cast<ExitCode>(from_gravest[one]);
      const auto lesser = static_cast<ExitCode>(from_gravest[other]);
      EXPECT_EQ(gravest(graver, lesser), graver);
      EXPECT_EQ(gravest(lesser, graver), graver);
    }
  }
}

TEST(ExitCode, IsOneForEveryOutcome) {
  EXPECT_EQ(status({ended(Outcome::passes)}), 0);
  EXPECT_EQ(status({ended(Outcome::fails)}), 1);
  EXPECT_EQ(status({ended(Outcome::undecided)}), 77);
  EXPECT_EQ(status({ended(Outcome::skipped)}), 77);
  EXPECT_EQ(status({ended(Outcome::no_baseline)}), 4);
  EXPECT_EQ(status({ended(Outcome::not_comparable)}), 4);
  EXPECT_EQ(status({broken(Outcome::passes)}), 2);
  EXPECT_EQ(status({failed(Outcome::undecided)}), 3);
}

TEST(ExitCode, LetsNothingHideAFailedLine) {
  const Verdict fails = ended(Outcome::fails);
  EXPECT_EQ(status({broken(Outcome::undecided), fails, failed(Outcome::undecided)}), 1);
  EXPECT_EQ(status({ended(Outcome::not_comparable), fails, ended(Outcome::undecided)}), 1);
  EXPECT_EQ(status({broken(Outcome::fails)}), 1);
  EXPECT_EQ(status({failed(Outcome::fails)}), 1);
  SuiteVerdict suite;
  suite.failed_among_others = {"a.line"};
  EXPECT_EQ(status({broken(Outcome::passes), ended(Outcome::undecided)}, skip, suite), 1);
}

TEST(ExitCode, LetsThePolicyExcuseWhatIsUndecidedAndNothingElse) {
  constexpr auto pass = UndecidedPolicy::pass;
  EXPECT_EQ(status({ended(Outcome::undecided)}, pass), 0);
  EXPECT_EQ(status({ended(Outcome::undecided)}, UndecidedPolicy::fail), 1);
  EXPECT_EQ(status({ended(Outcome::no_baseline)}, pass), 4);
  EXPECT_EQ(status({ended(Outcome::machine_slower)}, pass), 4);
  EXPECT_EQ(status({ended(Outcome::not_comparable)}, pass), 4);
  EXPECT_EQ(status({broken(Outcome::undecided)}, pass), 2);
  EXPECT_EQ(status({failed(Outcome::undecided)}, pass), 3);
  EXPECT_EQ(status({failed(Outcome::undecided)}, UndecidedPolicy::fail), 3);
}

// One assertion has no baseline and one lacks evidence. More rounds cannot help the first one.
TEST(ExitCode, AgreesWithTheWorstOfTheAssertions) {
  AssertionVerdict undecided;
  undecided.outcome = Outcome::undecided;
  AssertionVerdict unknown;
  unknown.outcome = Outcome::no_baseline;
  EXPECT_EQ(worst({undecided, unknown}), Outcome::no_baseline);
}

}  // namespace
}  // namespace stepgate
