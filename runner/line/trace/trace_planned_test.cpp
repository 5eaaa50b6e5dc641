// SPDX-License-Identifier: MIT
// Tests which parts of a trace the tracing process sends to the judging process.
#include "line/trace/trace_planned.h"

#include <gtest/gtest.h>

#include "device/simulated/simulated_device.h"
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

TEST(TraceLine, SaysWhetherTimelinesAreDrawn) {
  for (const bool with_timelines : {false, true}) {
    const TraceLine read = read_trace_line(
        to_line({.scenario = "a b.toml", .into = "/tmp/0", .with_timelines = with_timelines}));
    EXPECT_EQ(read.scenario, "a b.toml");
    EXPECT_EQ(read.into, "/tmp/0");
    EXPECT_EQ(read.with_timelines, with_timelines);
  }
  EXPECT_EQ(read_trace_line("a.toml").scenario, "");
  EXPECT_EQ(read_trace_line("a.toml\tb.json").scenario, "") << "a line of another program";
}

}  // namespace
}  // namespace stepgate
