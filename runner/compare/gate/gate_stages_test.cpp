// SPDX-License-Identifier: MIT
#include "compare/gate/gate_stages.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

using Words = std::vector<std::string>;

Introduction both_with(const Words& workloads) {
  Hello hello{
      .program = "p", .version = "1", .device = "d", .simulated = false, .workloads = workloads};
  hello.counts = true;
  return {hello, hello};
}

const Finding* with(const std::vector<Finding>& findings, const std::string& words) {
  const auto found = std::ranges::find_if(findings, [&](const Finding& finding) {
    return finding.words.find(words) != std::string::npos;
  });
  return found == findings.end() ? nullptr : &*found;
}

// Returns two scenarios with one assertion each.
std::vector<Scenario> scenarios() {
  std::vector<Scenario> all(2);
  for (Scenario& scenario : all) {
    scenario.name = &scenario == &all.front() ? "a" : "b";
    scenario.file = "folder/" + scenario.name + ".toml";
    Variant variant;
    variant.name = "fix";
    variant.place = {scenario.file, 7, 1};
    scenario.variants.push_back(variant);
    Expectation assertion;
    assertion.name = "fast";
    assertion.place = {scenario.file, 9, 1};
    scenario.expect.push_back(assertion);
  }
  return all;
}

HeadAssertion fast(const std::string& scenario, std::optional<Outcome> outcome) {
  return {.scenario = scenario, .name = "fast", .outcome = outcome, .reason = "why"};
}

TEST(JudgeIntroduction, FindsNothingWhereBothAreAlike) {
  const JudgedIntroduction judged = judge_introduction(both_with({"a/fix"}), {});
  EXPECT_TRUE(judged.comparable);
  EXPECT_TRUE(judged.findings.empty());
}

TEST(JudgeKernels, AnOlderBaseIsNoFaultAndAHeadThatTellsNothingIsNotGated) {
  Introduction both = both_with({"a/fix"});
  const std::string norm = "a/fix.kernel_us(layer_norm)", sgd = "a/fix.kernel_us(sgd)";
  both.base.kernels = {norm};
  both.head.kernels = {norm, sgd};
  Words kernels{norm, sgd};
  const std::vector<Finding> older = without_kernels_that_are_not_told(both, kernels);
  EXPECT_EQ(kernels, Words{norm});
  ASSERT_EQ(older.size(), 1u);
  EXPECT_EQ(older.front().severity, Severity::note);
  EXPECT_EQ(older.front().workload, "a/fix");
  EXPECT_EQ(older.front().what, "kernel_us(sgd)");
  both.head.kernels = {};
  const std::vector<Finding> silent = without_kernels_that_are_not_told(both, kernels);
  EXPECT_TRUE(kernels.empty());
  ASSERT_EQ(silent.size(), 1u);
  EXPECT_EQ(silent.front().severity, Severity::not_gated);
}

TEST(JudgeIntroduction, ComparesNothingOnTwoDevices) {
  Introduction both = both_with({"a/fix"});
  both.head.device = "";
  const JudgedIntroduction judged = judge_introduction(both, {});
  EXPECT_FALSE(judged.comparable);
  const Finding* finding = with(judged.findings, "BASE runs on d and HEAD on a device without a");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::not_gated);
  both = both_with({"a/fix"});
  both.head.simulated = true;
  EXPECT_FALSE(judge_introduction(both, {.simulation_asked = true}).comparable);
}

TEST(JudgeIntroduction, GatesNothingThatIsSimulatedUnasked) {
  Introduction both = both_with({"a/fix"});
  both.base.simulated = both.head.simulated = true;
  const auto is_found = [&](const GateScope& scope) {
    return with(judge_introduction(both, scope).findings, "nothing can be gated") != nullptr;
  };
  EXPECT_TRUE(is_found({}));
  EXPECT_FALSE(is_found({.simulation_asked = true}));
  EXPECT_FALSE(is_found({.of_commands = true})) << "it was asked for in the command line";
  both.head.stand_in = true;
  EXPECT_TRUE(is_found({.of_commands = true})) << "unless the worker says that it was not";
}

TEST(JudgeIntroduction, CountsThatNobodyGivesAreNotGatedWhereTheyAreAskedFor) {
  Introduction both = both_with({"a/fix"});
  both.head.counts = false;
  const std::vector<Finding> found = judge_introduction(both, {}).findings;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().severity, Severity::not_gated);
  EXPECT_EQ(found.front().words, "HEAD says that it counts nothing; --only time compares the rest");
  EXPECT_TRUE(judge_introduction(both, {.counts = false}).findings.empty());
}

TEST(JudgeIntroduction, ALostWorkIsNotGatedUnlessNobodyWantsIt) {
  Introduction both = both_with({"a/fix", "b/fix"});
  both.head.workloads = {"a/fix"};
  both.base.left_out = {{"c", "no memory"}};
  const JudgedIntroduction judged = judge_introduction(both, {});
  ASSERT_NE(with(judged.findings, "HEAD does not run it"), nullptr);
  EXPECT_EQ(with(judged.findings, "HEAD does not run it")->severity, Severity::not_gated);
  const std::vector<Finding> wanted = judge_introduction(both, {.patterns = {"a/*"}}).findings;
  EXPECT_EQ(with(wanted, "HEAD does not run it"), nullptr);
  EXPECT_NE(with(wanted, "cannot be timed here: no memory"), nullptr);
}

TEST(JudgeIntroduction, APatternThatMatchesNoWorkOfACommandLineIsRefused) {
  const Introduction both = both_with({"sort"});
  EXPECT_THROW(judge_introduction(both, {.patterns = {"sorted"}, .of_commands = true}),
               RequestError);
  EXPECT_NO_THROW(judge_introduction(both, {.patterns = {"so*"}, .of_commands = true}));
}

TEST(JudgeCounts, FailuresAreFindingsAndNotesMakeNoWorkSuspicious) {
  CountedPair less{.workload = "a/fix", .base = {}, .head = {}};
  less.base.planned = {{"launches_per_step", 5}};
  less.head.planned = {{"launches_per_step", 4}};
  CountedPair more = less;
  more.workload = "b/fix";
  std::swap(more.base, more.head);
  const JudgedCounts judged = judge_counts(
      std::vector{less, more}, std::vector{CountingFailure{"a/fix", "HEAD has crashed"}});
  EXPECT_EQ(judged.differing, (std::set<std::string>{"b/fix"}));
  ASSERT_EQ(judged.findings.size(), 3U);
  EXPECT_EQ(judged.findings.back().severity, Severity::failed);
  EXPECT_EQ(judged.findings.back().words, "HEAD has crashed");
  EXPECT_EQ(judged.findings.back().workload, "a/fix");
}

TEST(SlowestWorks, FailHaveTracesAndComeInOrder) {
  std::vector<CountedPair> counted(5);
  ComparisonVerdict comparison;
  for (std::size_t index = 0; index < counted.size(); ++index) {
    counted[index].workload = std::to_string(index);
    WorkloadVerdict workload{.name = counted[index].workload, .outcome = Outcome::fails};
    workload.timed = TimedEvidence{};
    workload.timed->ratio = 1.0 + 0.1 * static_cast<double>(index);
    comparison.workloads.push_back(workload);
  }
  comparison.workloads[4].outcome = Outcome::undecided;
  counted[3].base.untraced = "no tracer";
  const auto names = [&](std::size_t most) {
    Words all;
    for (const CountedPair* pair : slowest_workloads(counted, comparison, most))
      all.push_back(pair->workload);
    return all;
  };
  EXPECT_EQ(names(9), (Words{"2", "1", "0"}));
  EXPECT_EQ(names(2), (Words{"2", "1"}));
}

TEST(JudgeRun, AnAssertionThatHeadSaysNothingOfHasFailed) {
  const std::vector<Scenario> all = scenarios();
  RunOfProgram run;
  run.assertions = {fast("a", Outcome::passes)};
  const std::vector<Finding> found = judge_run(run, all);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().severity, Severity::failed);
  EXPECT_EQ(found.front().workload, "b");
  EXPECT_EQ(found.front().place.line, 9);
  // The scenario is broken, which is reported once.
  run.assertions.push_back(fast("b", std::nullopt));
  run.assertions.back().name = "scenario";
  EXPECT_EQ(judge_run(run, all).size(), 1U);
  run.assertions.back() = fast("b", Outcome::passes);
  EXPECT_TRUE(judge_run(run, all).empty());
}

TEST(JudgeRun, AFailureIsSaidOnceAndIsNotGatedWhereThereWasNothingToMeasureWith) {
  RunOfProgram run;
  run.failure = "ended with 5";
  EXPECT_EQ(judge_run(run, scenarios()).size(), 1U) << "not every assertion besides";
  EXPECT_EQ(judge_run(run, {}).front().severity, Severity::failed);
  EXPECT_EQ(judge_run(run, {}).front().words, "HEAD's `run` ended with 5");
  run.gated_nothing = true;
  EXPECT_EQ(judge_run(run, {}).front().severity, Severity::not_gated);
}

TEST(JudgeRun, ASuiteThatFailsBlocksThoughNoAssertionOfItIs) {
  RunOfProgram run;
  run.suite_failed = true;
  run.assertions = {fast("a", Outcome::undecided)};
  EXPECT_NE(with(judge_run(run, {}), "the suite as a whole fails"), nullptr);
  run.assertions.push_back(fast("b", Outcome::fails));
  EXPECT_EQ(with(judge_run(run, {}), "the suite as a whole fails"), nullptr);
}

TEST(KnownFromBase, OnlyWhatIsOpenIsAskedAndWhatBaseDoesNotHoldEitherIsANote) {
  const std::vector<Scenario> all = scenarios();
  RunOfProgram run;
  run.assertions = {fast("a", Outcome::fails), fast("b", Outcome::passes)};
  std::vector<Finding> found = judge_run(run, all);
  EXPECT_EQ(files_with_open_findings(found, all),
            std::vector<std::filesystem::path>{"folder/a.toml"});
  std::vector<Finding> known = found;
  RunOfProgram base;
  base.assertions = {fast("b", Outcome::fails)};
  know_from_base(known, base);
  EXPECT_EQ(known.front().severity, Severity::blocks) << "BASE speaks of another scenario";
  base.assertions = {fast("a", Outcome::fails)};
  know_from_base(known, base);
  EXPECT_EQ(known.front().severity, Severity::note);
  know_from_itself(found);
  EXPECT_EQ(found.front().severity, Severity::note);
}

TEST(KnownFromBase, WhereBasesRunFailedHeadIsNotTheOneToBlame) {
  std::vector<Finding> found = judge_run({.assertions = {fast("a", Outcome::fails)}}, {});
  ASSERT_EQ(found.size(), 1U);
  RunOfProgram base;
  base.failure = "ended with 3: out of disk";
  know_from_base(found, base);
  EXPECT_EQ(found.front().severity, Severity::failed);
  EXPECT_TRUE(found.front().words.starts_with("BASE's `run` ended with 3: out of disk, so"));
  base.refused = true;
  EXPECT_THROW(know_from_base(found, base), RequestError);
}

TEST(NothingCompared, IsNoPassAndIsSaidOnlyWhereNothingElseSaysWhy) {
  std::vector<Finding> findings{of_gate(FindingKind::counts, Severity::note, "x", "less")};
  refuse_nothing_compared(findings);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings.back().severity, Severity::not_gated);
  refuse_nothing_compared(findings);
  EXPECT_EQ(findings.size(), 2U);
  EXPECT_FALSE(decides_any(std::vector{fast("a", Outcome::skipped)}));
  EXPECT_TRUE(decides_any(std::vector{fast("a", Outcome::skipped), fast("b", Outcome::fails)}));
}

TEST(Places, OfAKernelOfALibraryAreInItsSource) {
  std::vector<Scenario> all = scenarios();
  all.front().variants.front().knobs.kernels["layer_norm"] = {};
  const auto of = [](const std::string& workload, const std::string& words, Severity severity) {
    Finding finding = of_gate(FindingKind::time, severity, "time", words);
    finding.workload = workload;
    return finding;
  };
  std::vector<Finding> findings{of("a/fix", "slower", Severity::blocks),
                                of("b/fix", "slower", Severity::blocks),
                                of("", "HEAD has crashed", Severity::failed),
                                of("a/fix", "BASE has crashed", Severity::failed),
                                of_gate(FindingKind::assertion, Severity::blocks, "fast", "slow")};
  findings.back().workload = "a";
  place(findings, all);
  place_at_source(findings, all, {.file = "norm.cu", .line = 4});
  std::vector<std::string> files;
  for (const Finding& finding : findings) files.push_back(finding.place.file);
  EXPECT_EQ(files,
            (Words{"norm.cu", "folder/b.toml", "norm.cu", "folder/a.toml", "folder/a.toml"}));
}

TEST(Places, AreThoseOfTheVariantOrOfTheScenario) {
  std::vector<Finding> findings(4);
  findings[0].workload = "a/fix";
  findings[1].workload = "b/other";
  findings[2].workload = "elsewhere/fix";
  findings[3].workload = "a/fix";
  findings[3].place = {"own.toml", 3, 1};
  place(findings, scenarios());
  EXPECT_EQ(findings[0].place.line, 7);
  EXPECT_EQ(findings[1].place.file, "folder/b.toml");
  EXPECT_EQ(findings[1].place.line, 0);
  EXPECT_EQ(findings[2].place.file, "");
  EXPECT_EQ(findings[3].place.file, "own.toml");
}

}  // namespace
}  // namespace stepgate
