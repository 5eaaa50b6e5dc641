// SPDX-License-Identifier: MIT
// Tests which parts of a trace the tracing process sends to the judging process.
#include "line/trace/trace_planned.h"

#include <gtest/gtest.h>

#include "device/simulated/simulated_device.h"
#include "line/decide.h"
#include "line/trace/trace_all.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

Planned planned_with(int kernels) {
  const Scenario scenario = parse_scenario(
      "claim = \"a step takes time\"\n"
      "model = { kind = \"spin\", kernel_us = 20, kernels = " +
          std::to_string(kernels) +
          " }\n"
          "[variant.only]\n[expect]\nline = \"only.gpu_idle <= 50%\"\n",
      "one.toml");
  return {.scenario = scenario, .plans = with_facts(build_step_plans(scenario, 1))};
}

Traced traced(const Planned& planned, Timelines timelines) {
  const auto device = make_simulated_device(
      read_profile(STEPGATE_SOURCE_DIR "/tests/baselines/round-numbers/device.toml"), {.seed = 1});
  return trace_planned(*device, LineArguments{}, planned, {}, 1, timelines);
}

TEST(TracePlanned, LeavesOutTimelinesThatNobodyDraws) {
  const Planned planned = planned_with(10);
  const Traced drawn = traced(planned, Timelines::drawn);
  const Traced judged = traced(planned, Timelines::judged);
  EXPECT_EQ(drawn.timelines.size(), 1U);
  EXPECT_TRUE(judged.timelines.empty());
  ASSERT_EQ(judged.rounds.size(), drawn.rounds.size());
  EXPECT_EQ(judged.rounds[0].variants[0].values, drawn.rounds[0].variants[0].values);
}

// Combines the steps of one plan with the counts of another.
TEST(TracePlanned, KeepsTimelinesThatAreNotTheirPlans) {
  Planned planned = planned_with(10);
  PlanFacts facts = planned_with(11).plans.front().facts();
  facts.operations = planned.plans.front().facts().operations;
  const StepPlan plan = planned.plans.front();
  planned.plans = {PlannedStep(plan, std::move(facts))};
  EXPECT_EQ(traced(planned, Timelines::judged).timelines.size(), 1U);
}

TEST(DecideCounts, DecidesFromATraceWhatTheVerdictSays) {
  Planned planned = planned_with(10);
  planned.scenario = parse_scenario(
      "claim = \"a wait is a wait\"\nmodel = { kind = \"spin\", kernels = 10 }\n"
      "[variant.only]\nsync.where = \"step\"\n[expect]\n"
      "waits = \"only.host_waits_per_step == 1\"\nnone = \"only.host_waits_per_step == 0\"\n"
      "launches = \"only.launches_per_step == 12\"\nidle = \"only.gpu_idle <= 50%\"\n",
      "one.toml");
  planned.plans = with_facts(build_step_plans(planned.scenario, 1));
  const Traced trace = traced(planned, Timelines::judged);
  planned.traced = trace;
  const std::vector<AssertionVerdict> early = decide_counts(planned, trace);
  const Verdict verdict = decide_without_rounds(planned, {}, 1, {}, "no device").verdict;
  ASSERT_EQ(early.size(), 3U);
  for (std::size_t index = 0; index < early.size(); ++index) {
    EXPECT_EQ(early[index].name, verdict.assertions[index].name);
    EXPECT_EQ(early[index].outcome, verdict.assertions[index].outcome);
    EXPECT_EQ(early[index].reason, verdict.assertions[index].reason);
  }
  EXPECT_EQ(early[0].outcome, Outcome::passes) << early[0].reason;
  EXPECT_EQ(early[1].outcome, Outcome::fails);

  Traced contradicts = trace;
  contradicts.not_as_planned = "one launch more";
  EXPECT_TRUE(decide_counts(planned, contradicts).empty());
  Traced none = trace;
  none.unavailable = "no CUPTI";
  EXPECT_TRUE(decide_counts(planned, none).empty());
  planned.scenario.requirements.gpus = 2;
  EXPECT_TRUE(decide_counts(planned, trace).empty()) << "it may be skipped";
}

TEST(TraceLine, SaysWhetherTimelinesAreDrawn) {
  for (const bool with_timelines : {false, true}) {
    const TraceLine read = read_trace_line(to_line({.file = "a b.toml",
                                                    .scenario = "a b@batch.size=2",
                                                    .into = "/tmp/0",
                                                    .with_timelines = with_timelines}));
    EXPECT_EQ(read.file, "a b.toml");
    EXPECT_EQ(read.scenario, "a b@batch.size=2");
    EXPECT_EQ(read.into, "/tmp/0");
    EXPECT_EQ(read.with_timelines, with_timelines);
  }
  EXPECT_EQ(read_trace_line("a.toml").file, "");
  EXPECT_EQ(read_trace_line("a.toml\tb.json").file, "") << "a line of another program";
}

}  // namespace
}  // namespace stepgate
