// SPDX-License-Identifier: MIT
#include "compare/gate/judge_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "base/files/temporary_folder.h"
#include "compare/gate/compare_scenarios.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

CountedPair pair_of_equals() {
  StepCounts counts;
  counts.planned = {{"launches_per_step", 26},
                    {"host_waits_per_step", 0},
                    {"flops_per_step", 1e9},
                    {"peak_live", 1 << 20}};
  counts.traced = {{"launches_per_step", 26}, {"host_waits_per_step", 0}};
  counts.operations = {{"forward: gemm", 4}, {"log: loss", 0.25}};
  counts.losses = {"3f800000", "3f000000"};
  counts.time = {{"step", 100e-6}, {"math", 50e-6}, {"memory", 30e-6}, {"idle_for_host", 20e-6}};
  return {"a/fix", counts, counts};
}

const Finding* about(const std::vector<Finding>& findings, const std::string& what) {
  const auto found = std::ranges::find(findings, what, &Finding::what);
  return found == findings.end() ? nullptr : &*found;
}

TEST(CompareCounts, FindsNothingWhereNothingDiffers) {
  EXPECT_TRUE(compare_counts(pair_of_equals()).empty());
}

TEST(CompareCounts, BlocksMoreOfAnythingAndNamesTheOperation) {
  CountedPair pair = pair_of_equals();
  pair.head.planned["host_waits_per_step"] = 1;
  pair.head.traced["host_waits_per_step"] = 1;
  pair.head.operations["sync: wait for the device"] = 1;
  const std::vector<Finding> findings = compare_counts(pair);
  ASSERT_EQ(findings.size(), 1u) << "the trace says it too, and once is enough";
  EXPECT_EQ(findings.front().severity, Severity::blocks);
  EXPECT_EQ(findings.front().words, "host_waits_per_step 0 -> 1");
  EXPECT_EQ(findings.front().mechanism, "'sync: wait for the device' 0 -> 1");
}

TEST(CompareCounts, BlocksWhatOnlyTheTraceShows) {
  CountedPair pair = pair_of_equals();
  pair.head.traced["host_waits_per_step"] = 1;
  pair.head.waits = {{"sync", 1}};
  const std::vector<Finding> findings = compare_counts(pair);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings.front().severity, Severity::blocks);
  EXPECT_EQ(findings.front().words,
            "host_waits_per_step 0 -> 1 in a trace, though both plans say the same");
  EXPECT_EQ(findings.front().mechanism, "calls that can block: sync 0 -> 1");
}

TEST(CompareCounts, LessIsANoteButLessArithmeticIsAnotherStep) {
  CountedPair pair = pair_of_equals();
  pair.head.planned["launches_per_step"] = 20;
  pair.head.planned["flops_per_step"] = 1e8;
  const std::vector<Finding> findings = compare_counts(pair);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(about(findings, "launches_per_step")->severity, Severity::note);
  EXPECT_EQ(about(findings, "flops_per_step")->severity, Severity::blocks);
}

TEST(CompareCounts, WhatDescribesAStepIsANoteEitherWay) {
  CountedPair pair = pair_of_equals();
  pair.base.planned["streams"] = 2;
  pair.base.planned["loader_threads"] = 0;
  pair.base.planned["requests_per_step"] = 8;
  pair.head.planned["streams"] = 1;
  pair.head.planned["loader_threads"] = 2;
  pair.head.planned["requests_per_step"] = 9;
  const std::vector<Finding> findings = compare_counts(pair);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(about(findings, "streams")->severity, Severity::note);
  EXPECT_EQ(about(findings, "loader_threads")->severity, Severity::note);
  EXPECT_EQ(about(findings, "requests_per_step")->severity, Severity::blocks);
}

TEST(CompareCounts, BlocksOtherLosses) {
  CountedPair pair = pair_of_equals();
  pair.head.losses[1] = "3f000001";
  const std::vector<Finding> findings = compare_counts(pair);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings.front().words, "the loss of step 1 differs: not the same step");
  pair.head.losses.clear();
  EXPECT_EQ(compare_counts(pair).front().severity, Severity::blocks);
}

TEST(CompareCounts, AllowsLossesAsFarApartAsBaseSays) {
  CountedPair pair = pair_of_equals();
  pair.head.losses[1] = "3f010000";  // 0.504 and not 0.5
  pair.head.loss_bound = 1;
  EXPECT_EQ(compare_counts(pair).size(), 1u) << "HEAD does not decide it";
  pair.base.loss_bound = 0.01;
  EXPECT_EQ(compare_counts(pair).size(), 0u);
  pair.base.loss_bound = 0.005;
  EXPECT_EQ(compare_counts(pair).size(), 1u);
  pair.head.losses[1] = "7fc00000";  // NaN
  pair.base.loss_bound = 1;
  EXPECT_EQ(compare_counts(pair).size(), 1u);
  pair.head.losses.pop_back();
  EXPECT_EQ(compare_counts(pair).size(), 1u);
}

TEST(CompareCounts, AMissingTraceIsNoPass) {
  CountedPair pair = pair_of_equals();
  pair.head.traced.clear();
  ASSERT_EQ(compare_counts(pair).size(), 1u) << "whether or not it says why";
  EXPECT_EQ(compare_counts(pair).front().severity, Severity::not_gated);
}

TEST(CompareCounts, ACountThatHeadDoesNotHaveAnyMoreIsNoPass) {
  CountedPair pair = pair_of_equals();
  pair.head.planned.clear();
  const std::vector<Finding> findings = compare_counts(pair);
  ASSERT_EQ(findings.size(), pair.base.planned.size());
  EXPECT_EQ(findings.front().severity, Severity::not_gated);
}

TEST(CompareCounts, DoesNotCompareMetricsThatOnlyOneBuildKnows) {
  CountedPair pair = pair_of_equals();
  pair.head.planned["bubbles_per_step"] = 3;
  EXPECT_TRUE(compare_counts(pair).empty());
}

TEST(CompareWorks, AWorkThatHeadHasLostIsNotGated) {
  Introduction both;
  both.base.workloads = {"a/fix", "b/fix"};
  both.head.workloads = {"a/fix", "c/fix"};
  const std::vector<Finding> findings = compare_workloads(both);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].severity, Severity::not_gated);
  EXPECT_EQ(findings[0].workload, "b/fix");
  EXPECT_EQ(findings[1].severity, Severity::note);
}

ComparisonVerdict one_work_that_is(Outcome outcome) {
  ComparisonVerdict comparison;
  comparison.workloads.push_back({.name = "a/fix",
                                  .outcome = outcome,
                                  .base_step_seconds = 100e-6,
                                  .head_step_seconds = 110e-6,
                                  .accepted_growth = 0.12,
                                  .at_accepted_growth = Outcome::passes,
                                  .timed = {},
                                  .reason = "step time +10 %"});
  return comparison;
}

TEST(FindingsOfAComparison, NameThePartOfTheStepThatGrew) {
  CountedPair pair = pair_of_equals();
  pair.head.time = {{"step", 111e-6}, {"math", 51e-6}, {"memory", 40e-6}, {"idle_for_host", 20e-6}};
  const auto findings = findings_of(one_work_that_is(Outcome::fails), {&pair, 1});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings.front().severity, Severity::blocks);
  EXPECT_EQ(findings.front().mechanism,
            "kernels limited by memory 30 us -> 40 us of a traced step");
  EXPECT_TRUE(findings_of(one_work_that_is(Outcome::passes), {&pair, 1}).empty());
  EXPECT_EQ(findings_of(one_work_that_is(Outcome::undecided), {&pair, 1}).front().severity,
            Severity::undecided);
  EXPECT_EQ(findings_of(one_work_that_is(Outcome::not_comparable), {&pair, 1}).front().severity,
            Severity::not_gated);
}

Accepted accepting(const std::string& what, double at_most) {
  return {.workload = "a/*",
          .what = what,
          .limit = at_most,
          .limit_text = "so much",
          .who = "ada",
          .why = "clearer code",
          .until = "2026-12-31",
          .place = {"accepted.toml", 3, 1}};
}

TEST(JudgeGate, BlocksWhateverElseIsTheCase) {
  std::vector<Finding> findings(4);
  findings[0].severity = Severity::note;
  findings[1].severity = Severity::failed;
  findings[2].severity = Severity::blocks;
  findings[3].severity = Severity::not_gated;
  EXPECT_EQ(judge_gate(findings, {}, "2026-11-23").severity, Severity::blocks);
  findings.erase(findings.begin() + 2);
  EXPECT_EQ(judge_gate(findings, {}, "2026-11-23").severity, Severity::failed);
  EXPECT_EQ(judge_gate({}, {}, "2026-11-23").severity, Severity::note);
}

TEST(JudgeGate, TakesOutWhatWasAcceptedUpToItsLimitAndItsDay) {
  const auto findings = findings_of(one_work_that_is(Outcome::fails), {});
  const auto severity = [&](const Accepted& entry, const std::string& day) {
    return judge_gate(findings, {&entry, 1}, day).severity;
  };
  EXPECT_EQ(severity(accepting("time", 0.12), "2026-12-31T23:59:59Z"), Severity::note);
  EXPECT_EQ(severity(accepting("time", 0.12), "2027-01-01"), Severity::blocks);
  EXPECT_EQ(severity(accepting("time", 0.05), "2026-11-23"), Severity::blocks);
  EXPECT_EQ(severity(accepting("losses", 0), "2026-11-23"), Severity::blocks);
  auto not_shown = findings;
  for (const Outcome outcome : {Outcome::undecided, Outcome::fails}) {
    not_shown.front().at_accepted_growth = outcome;
    const Accepted entry = accepting("time", 0.12);
    const GateVerdict verdict = judge_gate(not_shown, {&entry, 1}, "2026-11-23");
    EXPECT_EQ(verdict.severity, Severity::blocks);
    EXPECT_NE(verdict.findings.front().words.find(outcome == Outcome::fails
                                                      ? "; beyond the so much that ada accepted"
                                                      : "; not shown to be within the so much"),
              std::string::npos)
        << verdict.findings.front().words;
  }
  Accepted of_others = accepting("time", 0.12);
  of_others.workload = "b/*";
  EXPECT_EQ(severity(of_others, "2026-11-23"), Severity::blocks);
  EXPECT_EQ(judge_gate(findings, {&of_others, 1}, "2026-11-23").unused.size(), 1u);
}

TEST(JudgeGate, AcceptsACountUpToItsValue) {
  CountedPair pair = pair_of_equals();
  pair.head.planned["launches_per_step"] = 27;
  const Accepted up_to_27 = accepting("launches_per_step", 27);
  EXPECT_EQ(judge_gate(compare_counts(pair), {&up_to_27, 1}, "2026-11-23").severity,
            Severity::note);
  pair.head.planned["launches_per_step"] = 28;
  EXPECT_EQ(judge_gate(compare_counts(pair), {&up_to_27, 1}, "2026-11-23").severity,
            Severity::blocks);
}

TEST(JudgeGate, AKernelIsAFindingOfItsWorkloadAndAcceptedByItsOwnName) {
  const std::string name = "a/fix.kernel_us(sgd)";
  ComparisonVerdict comparison;
  comparison.workloads.push_back({.name = name,
                                  .outcome = Outcome::fails,
                                  .accepted_growth = 0.05,
                                  .at_accepted_growth = Outcome::passes});
  const CountedPair pair = pair_of_equals();
  const std::vector<Finding> found = findings_of(comparison, {&pair, 1});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().workload, "a/fix");
  EXPECT_EQ(found.front().what, "kernel_us(sgd)");
  const auto judged = [&](const std::string& what) {
    const Accepted entry = accepting(what, 0.05);
    const std::vector<std::string> workloads{name};
    EXPECT_EQ(accepted_growths({&entry, 1}, workloads, "2026-11-23").size(),
              what == "kernel_us(sgd)" ? 1u : 0u);
    return judge_gate(found, {&entry, 1}, "2026-11-23").severity;
  };
  EXPECT_EQ(judged("time"), Severity::blocks) << "that of the step is accepted";
  EXPECT_EQ(judged("kernel_us(sgd)"), Severity::note);
}

TEST(JudgeGate, AcceptsLessArithmeticDownToItsValue) {
  CountedPair pair = pair_of_equals();
  pair.head.planned["flops_per_step"] = 0.9e9;
  const Accepted down_to = accepting("flops_per_step", 0.9e9);
  EXPECT_EQ(judge_gate(compare_counts(pair), {&down_to, 1}, "2026-11-23").severity, Severity::note);
  pair.head.planned["flops_per_step"] = 0.5e9;
  EXPECT_EQ(judge_gate(compare_counts(pair), {&down_to, 1}, "2026-11-23").severity,
            Severity::blocks);
}

TEST(JudgeGate, AcceptsNoAssertionByTheNameOfAMetric) {
  const HeadAssertion assertion{.scenario = "a/x",
                                .name = "host_waits_per_step",
                                .outcome = Outcome::fails,
                                .reason = "1; it must be 0"};
  const Accepted entry = accepting("host_waits_per_step", 9);
  EXPECT_EQ(judge_gate(findings_of({&assertion, 1}), {&entry, 1}, "2026-11-23").severity,
            Severity::blocks);
}

// HEAD's and BASE's outcomes of the same assertion decide together how severe the finding is.
TEST(JudgeGate, KnowsWhatBaseDoesNotHoldEither) {
  const auto severity = [](std::optional<Outcome> head, std::optional<Outcome> base) {
    const HeadAssertion of_head{
        .scenario = "a", .name = "s", .outcome = head, .reason = "passes: failed: skipped:"};
    std::vector<Finding> found = findings_of({&of_head, 1});
    if (found.empty()) return Severity::note;
    compare_with_base(found.front(), {.scenario = "a", .name = "s", .outcome = base, .reason = {}});
    return found.front().severity;
  };
  using enum Outcome;
  for (const Outcome same : {fails, undecided, skipped})
    EXPECT_EQ(severity(same, same), Severity::note);
  EXPECT_EQ(severity(undecided, fails), Severity::note);
  EXPECT_EQ(severity(fails, undecided), Severity::blocks);
  EXPECT_EQ(severity(fails, passes), Severity::blocks);
  EXPECT_EQ(severity(fails, std::nullopt), Severity::blocks);
  EXPECT_EQ(severity(undecided, passes), Severity::undecided);
  EXPECT_EQ(severity(skipped, passes), Severity::blocks);
  EXPECT_EQ(severity(skipped, fails), Severity::undecided);
  EXPECT_EQ(severity(std::nullopt, std::nullopt), Severity::failed);
  EXPECT_EQ(severity(no_baseline, no_baseline), Severity::not_gated);
}

TEST(JudgeGate, ExcusesASlowStepByASlowerAnchorOfAnotherStep) {
  const auto asserted = [](std::string name, Outcome outcome, double step, double anchor) {
    return HeadAssertion{.scenario = "s",
                         .name = std::move(name),
                         .outcome = outcome,
                         .reason = "slow",
                         .since_stored = GrowthSinceStored{.step = step,
                                                           .anchor = "hbm.1",
                                                           .anchor_growth = anchor,
                                                           .most_anchor_growth = anchor + 0.01}};
  };
  std::vector<HeadAssertion> all = {asserted("as_much", Outcome::fails, 1.26, 1),
                                    asserted("more", Outcome::fails, 1.27, 1),
                                    asserted("open", Outcome::undecided, 1.1, 1),
                                    asserted("machine", Outcome::machine_slower, 1.25, 1.255)};
  all.push_back(
      {.scenario = "s", .name = "count", .outcome = Outcome::fails, .reason = "2, not 1"});
  excuse_by_other_anchors(all);
  EXPECT_EQ(all[0].outcome, Outcome::machine_slower);
  EXPECT_EQ(all[0].reason,
            "slow; but hbm.1 takes 1.25 times as long as then on this machine, "
            "which would explain it");
  EXPECT_EQ(all[1].outcome, Outcome::fails);
  EXPECT_EQ(all[2].outcome, Outcome::undecided);
  EXPECT_EQ(all[4].outcome, Outcome::fails);

  std::vector<HeadAssertion> alone = {asserted("slow", Outcome::fails, 1.1, 1.2)};
  excuse_by_other_anchors(alone);
  EXPECT_EQ(alone[0].outcome, Outcome::fails);
}

TEST(JudgeGate, SaysToWidenTheLimitWhereMoreRoundsWouldNotDecide) {
  HeadAssertion assertion{
      .scenario = "a", .name = "s", .outcome = Outcome::undecided, .reason = "r"};
  EXPECT_EQ(findings_of({&assertion, 1}).front().words, "undecided: r");
  assertion.out_of_reach = true;
  EXPECT_EQ(findings_of({&assertion, 1}).front().words, "undecided: r; widen the limit");
}

TEST(JudgeGate, NothingThatFailedOrWasNotComparedCanBeAccepted) {
  for (const Severity severity : {Severity::failed, Severity::not_gated}) {
    auto findings = findings_of(one_work_that_is(Outcome::fails), {});
    findings.front().severity = severity;
    const Accepted entry = accepting("time", 1);
    EXPECT_EQ(judge_gate(findings, {&entry, 1}, "2026-11-23").severity, severity);
  }
}

class Files : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const auto file = folder_.path() / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file;
  }
  TemporaryFolder folder_;
};

using AcceptedFile = Files;

TEST_F(AcceptedFile, SaysWhoWhyAndUntilWhenOrIsRefused) {
  const std::string good =
      "[[accepted]]\nworkload = \"a/*\"\nwhat = \"time\"\nat_most = \"5%\"\nwho = \"ada\"\n"
      "why = \"clearer code\"\nuntil = \"2026-12-31\"\n";
  const auto read = read_accepted(write("good.toml", good), "2026-11-26");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_DOUBLE_EQ(read.front().limit, 0.05);
  const auto refuses = [&](const std::string& from, const std::string& to,
                           const std::string& says) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    try {
      (void)read_accepted(write("bad.toml", text), "2026-11-26");
      ADD_FAILURE() << "accepted " << to;
    } catch (const RequestError& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  };
  refuses("who = \"ada\"\n", "", "'who'");
  refuses("why = \"clearer code\"", "why = \" \"", "'why' is empty");
  refuses("until = \"2026-12-31\"", "until = \"never\"", "'until' must be a day");
  refuses("what = \"time\"", "what = \"kernel_us(layer_nrom)\"", "did you mean 'layer_norm'?");
  refuses("what = \"time\"", "what = \"kernel_us(layer_norm\"", "names no kernel");
  refuses("at_most = \"5%\"\n", "", "'at_most' must say how much");
  refuses("at_most", "at_least", "at_least");
  refuses("\"5%\"", "\"15\"", "'at_most' must say how much");
  refuses("\"5%\"", "\"5 GiB\"", "'at_most' must say how much");
  refuses("\"2026-12-31\"", "\"2028-01-01\"", "'until' is more than a year away");
  refuses("\"2026-12-31\"", "\"9999-12-31\"", "'until' is more than a year away");
  for (const std::string all : {"*", "**", "*/*"})
    refuses("a/*", all, "'workload' is every workload");
  refuses("\"2026-12-31\"", "\"9999-99-99\"", "'until' must be a day");
  refuses("\"2026-12-31\"", "\"2026-02-31\"", "'until' must be a day");
  refuses("\"2026-12-31\"", "\"2026-12-31T10:00:00Z\"", "'until' must be a day");
}

using ScenariosOfBoth = Files;

const std::string scenario =
    "claim = \"x\"\ntags = [\"smoke\"]\nmodel = { kind = \"spin\" }\n[variant.a]\n[variant.b]\n"
    "[expect]\nfast = \"b.samples_per_s >= 0.98 * a.samples_per_s\"\n"
    "few = \"b.host_waits_per_step == 0\"\n";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST_F(ScenariosOfBoth, AChangedLimitBlocksAndIsQuoted) {
  const std::vector<Scenario> base{read_scenario(write("base/s.toml", scenario))};
  const auto found = [&](const std::string& text) {
    const std::vector<Scenario> head{read_scenario(write("head/s.toml", text))};
    return compare_scenarios(base, head, {});
  };
  EXPECT_TRUE(found(scenario).empty());
  const auto looser = found(with(scenario, "0.98", "0.5"));
  ASSERT_EQ(looser.size(), 1u);
  EXPECT_EQ(looser.front().severity, Severity::blocks);
  EXPECT_EQ(looser.front().words,
            "HEAD changes 'fast': b.samples_per_s >= 0.98 * a.samples_per_s -> b.samples_per_s >= "
            "0.5 * a.samples_per_s");
  EXPECT_EQ(found(with(scenario, "few = \"b.host_waits_per_step == 0\"\n", "")).front().words,
            "HEAD removes 'few': b.host_waits_per_step == 0");
  EXPECT_EQ(found(with(scenario, "\"smoke\"", "\"nightly\"")).front().severity, Severity::blocks);
  EXPECT_EQ(found(scenario + "[measure]\nrounds = 9\n").front().words, "HEAD changes [measure]");
  EXPECT_EQ(found(scenario + "[requires]\ngpus = 2\n").front().words, "HEAD changes [requires]");
  EXPECT_EQ(found(scenario + "[regime]\nbig = \"b.host_share >= 99.9%\"\n").front().words,
            "HEAD changes [regime]");
  EXPECT_EQ(found(scenario + "[variant.b.gate]\nmargin = \"50%\"\n").front().words,
            "HEAD changes gate.margin of 'b': none of its own -> 50%");
  EXPECT_EQ(found(scenario + "[variant.b.gate]\nmargin = \"50%\"\n").front().severity,
            Severity::blocks);
  EXPECT_EQ(found(with(scenario, "[variant.b]", "[variant.b]\n[variant.c]")).front().words,
            "HEAD adds variant 'c', with gate.margin none of its own");
  std::string three = with(scenario, "[variant.b]", "[variant.b]\n[variant.c]");
  const std::vector<Scenario> base_of_three{read_scenario(write("three/s.toml", three))};
  const std::vector<Scenario> renamed{read_scenario(
      write("renamed/s.toml", with(three, "[variant.c]", "[variant.d]\ngate.margin = \"100%\"")))};
  const auto of_renamed = compare_scenarios(base_of_three, renamed, {});
  ASSERT_EQ(of_renamed.size(), 2u);
  EXPECT_EQ(of_renamed[0].words, "HEAD removes variant 'c'");
  EXPECT_EQ(of_renamed[0].severity, Severity::blocks);
  EXPECT_EQ(of_renamed[1].words, "HEAD adds variant 'd', with gate.margin 100%");
  const auto more = found(scenario + "also = \"b.launches_per_step <= 100\"\n");
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more.front().severity, Severity::note);
  EXPECT_EQ(found(with(scenario, "\"spin\"", "\"spin\", kernels = 11")).front().severity,
            Severity::note);
}

TEST_F(ScenariosOfBoth, ARemovedScenarioBlocksAndANewOneIsSaidToBeNew) {
  const std::vector<Scenario> base{read_scenario(write("base/s.toml", scenario))};
  const std::vector<Scenario> head{read_scenario(write("head/t.toml", scenario))};
  const auto findings = compare_scenarios(base, head, {});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].words, "HEAD removes it");
  EXPECT_EQ(findings[0].severity, Severity::blocks);
  EXPECT_EQ(findings[1].severity, Severity::note);
  const auto unread = compare_scenarios(base, head, {{"s", "unknown key 'ranks'"}});
  EXPECT_EQ(unread[0].severity, Severity::blocks);
  EXPECT_NE(unread[0].words.find("cannot read: unknown key 'ranks'"), std::string::npos);
}

GradientSketch gradient_of(float value) {
  const std::vector<float> values(100, value);
  GradientSketch sketch;
  add_part({.elements = std::ssize(values)}, values.data(), DType::fp32, sketch);
  return sketch;
}

TEST(CompareCounts, BlocksOtherGradientsByTheBoundOfBase) {
  CountedPair pair{.workload = "s/fix", .base = {}, .head = {}};
  pair.base.gradients = {{"bias", gradient_of(1)}, {"weight", gradient_of(3)}};
  pair.base.gradient_bound = 0.01;
  pair.head = pair.base;
  pair.head.gradient_bound = 1;
  EXPECT_TRUE(compare_counts(pair).empty());
  pair.head.gradients["weight"] = gradient_of(3.01F);
  EXPECT_TRUE(compare_counts(pair).empty());
  pair.head.gradients["weight"] = gradient_of(3.2F);
  auto findings = compare_counts(pair);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::blocks);
  EXPECT_EQ(findings[0].what, "gradients");
  EXPECT_NE(findings[0].words.find("the gradient of 'weight' differs by"), std::string::npos)
      << findings[0].words;
  pair.head.gradients["weight"] = gradient_of(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(compare_counts(pair).size(), 1U);
  pair.head.gradients.erase("weight");
  findings = compare_counts(pair);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::not_gated);
  pair.base.gradients.clear();
  EXPECT_TRUE(compare_counts(pair).empty()) << "a build of before gives none";
}

TEST(CompareCounts, BlocksAStepThatIsAnotherWhenItBeginsAgain) {
  CountedPair pair{.workload = "s/fix", .base = {}, .head = {}};
  pair.base.gradients = pair.head.gradients = {{"weight", gradient_of(3)}};
  pair.base.gradient_bound = pair.head.gradient_bound = 0.01;
  pair.head.begun_again = {{"weight", 0.005}};
  EXPECT_TRUE(compare_counts(pair).empty());
  pair.head.begun_again = {{"weight", 1}};
  const auto findings = compare_counts(pair);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::blocks);
}

}  // namespace
}  // namespace stepgate
