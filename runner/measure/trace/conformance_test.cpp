// SPDX-License-Identifier: MIT
// Tests with handwritten traces whether they match their plans.
#include "measure/trace/conformance.h"

#include <gtest/gtest.h>

#include "measure/testing/fake_device.h"
#include "measure/testing/traced_by_hand.h"

namespace stepgate {
namespace {

// The baseline waits for the device once a step and holds twice the memory of the fix.
std::string conformance(const Traced& traced) {
  std::vector<PlannedStep> plans;
  for (StepPlan& plan : plans_named({"baseline", "fix"})) {
    const bool baseline = plan.variant == "baseline";
    PlanFacts facts;
    facts.counts = {{Metric::host_waits_per_step, baseline ? 1 : 0},
                    {Metric::peak_live, (baseline ? 64 : 32) << 20}};
    plans.emplace_back(std::move(plan), std::move(facts));
  }
  return reason_against_conformance(plans, traced).value_or("agrees");
}

Traced traced_as_planned() {
  return traced_rounds({traced_step({}, {{Metric::host_waits_per_step, 1}}),
                        traced_step({}, {{Metric::host_waits_per_step, 0}})});
}

TEST(Conformance, FindsACountThatIsNotThePlans) {
  Traced traced = traced_as_planned();
  EXPECT_EQ(conformance(traced), "agrees");
  traced.rounds[2].variants[1].values[Metric::host_waits_per_step] = 2;
  EXPECT_EQ(conformance(traced),
            "the trace of 'fix' is not its plan: host_waits_per_step is 2 in traced round 3 and 0 "
            "by the plan");
}

// Rank 1 of the second variant waits once more than the others.
TEST(Conformance, NamesTheRankThatCountsSomethingElse) {
  Traced traced = traced_as_planned();
  for (TracedRound& round : traced.rounds) {
    round.ranks.resize(round.variants.size());
    for (int rank = 0; rank < 3; ++rank) {
      TracedStep step = round.variants[1];
      step.rank = rank;
      round.ranks[1].push_back(step);
    }
  }
  EXPECT_EQ(conformance(traced), "agrees");
  traced.rounds[2].ranks[1][1].values[Metric::host_waits_per_step] = 1;
  EXPECT_EQ(conformance(traced),
            "the trace of 'fix' is not its plan: host_waits_per_step is 1 on rank 1 in traced "
            "round 3 and 0 by the plan");
}

TEST(Conformance, ComparesRanksWhereThePlanDoesNotKnow) {
  PlanFacts facts;
  facts.counts = {{Metric::launches_per_step, 3}};
  facts.may_differ = {Metric::launches_per_step};
  const std::vector<PlannedStep> plans{{plans_named({"fix"}).front(), facts}};
  Traced traced = traced_rounds({traced_step({})});
  for (TracedRound& round : traced.rounds) {
    round.ranks.resize(1);
    for (int rank = 0; rank < 3; ++rank) {
      round.ranks[0].push_back(traced_step({}, {{Metric::launches_per_step, 4}}));
      round.ranks[0].back().rank = rank;
    }
  }
  EXPECT_EQ(reason_against_conformance(plans, traced), std::nullopt) << "though the plan says 3";
  traced.rounds[1].ranks[0][2].values[Metric::launches_per_step] = 5;
  EXPECT_EQ(reason_against_conformance(plans, traced),
            "the ranks of 'fix' do not agree: launches_per_step is 5 on rank 2 in traced round 2 "
            "and 4 on rank 0");
}

TEST(Conformance, AllowsForTheRoundingOfFractionsOnly) {
  PlanFacts third;
  third.counts = {{Metric::host_waits_per_step, 1.0 / 3}};
  const std::vector<PlannedStep> plans{{plans_named({"fix"}).front(), third}};
  const auto reason = [&](double traced) {
    return reason_against_conformance(
        plans, traced_rounds({traced_step({}, {{Metric::host_waits_per_step, traced}})}));
  };
  EXPECT_FALSE(reason(10.0 / 30));
  EXPECT_TRUE(reason(11.0 / 30));
}

TEST(Conformance, SaysInWhichOperationTheyPart) {
  StepPlan plan = plans_named({"fix"}).front();
  plan.operations = {{.name = "forward", .phase = Phase::forward, .action = HostWork{}},
                     {.name = "log", .phase = Phase::log, .action = HostWork{}}};
  const std::vector<PlannedStep> plans{with_facts(plan)};
  Traced traced = traced_rounds({traced_step({}, {{Metric::host_waits_per_step, 1}})});
  Trace timeline;
  timeline.steps = 2;
  timeline.spans = {{.operation = 1}, {.operation = -1}};
  const HostCall wait{.name = "cudaMemcpy", .kind = CallKind::copy, .can_block = true, .span = 0};
  HostCall of_the_runner = wait;
  of_the_runner.span = 1;
  timeline.calls = {wait, of_the_runner, wait};
  traced.timelines = {{timeline}};
  EXPECT_EQ(reason_against_conformance(plans, traced),
            "the trace of 'fix' is not its plan: host_waits_per_step is 1 in traced round 1 and 0 "
            "by the plan; in 'log' the timeline has 1 a step (cudaMemcpy), the plan 0");
}

TEST(Conformance, RefusesMoreMemoryThanPlannedAndAllowsLess) {
  Traced traced = traced_as_planned();
  for (TracedRound& round : traced.rounds) {
    round.variants[1].memory.peak_allocated_bytes = 32 << 20;  // as planned
  }
  EXPECT_EQ(conformance(traced), "agrees");
  traced.rounds[0].variants[1].memory.peak_allocated_bytes += 1 << 20;
  EXPECT_EQ(conformance(traced),
            "the trace of 'fix' is not its plan: its buffers held 33 MiB of device memory at once "
            "(34603008 bytes), and 32 MiB by the plan (33554432)");
}

// The baseline conforms on every rank, the fix on one of two.
TEST(Conformance, RefusesWorkOnAnotherStream) {
  Traced traced = traced_as_planned();
  const std::string words = "9 kernels of 'norm' ran on another stream than the plan's 'compute'";
  traced.rounds[1].variants[1].on_another_stream = words;
  EXPECT_EQ(conformance(traced),
            "the trace of 'fix' is not its plan: " + words + ", in traced round 2");
  traced = traced_as_planned();
  for (TracedRound& round : traced.rounds) {
    round.ranks.resize(2);
    round.ranks[1] = {round.variants[1], round.variants[1]};
    round.ranks[1][1].rank = 1;
  }
  EXPECT_EQ(conformance(traced), "agrees");
  traced.rounds[2].ranks[1][1].on_another_stream = words;
  EXPECT_EQ(conformance(traced),
            "the trace of 'fix' is not its plan: " + words + " on rank 1, in traced round 3");
}

// The counted library records come from rank 0; a difference on another rank must still be found.
TEST(Conformance, RefusesWhatALibraryOfCollectivesCountsOtherwise) {
  Traced traced = traced_as_planned();
  for (TracedRound& round : traced.rounds) {
    round.variants[1].library = LibraryRecord{.library = "NCCL 2.28.9"};
    round.ranks.resize(2);
    round.ranks[1] = {round.variants[1], round.variants[1]};
    round.ranks[1][1].rank = 1;
  }
  EXPECT_EQ(conformance(traced), "agrees");
  traced.rounds[1].ranks[1][1].library->difference = "it has 7 and not 8";
  EXPECT_EQ(conformance(traced),
            "what NCCL 2.28.9 enqueued of 'fix' at rank 1 is not its plan, in traced round 2: it "
            "has 7 and not 8");
}

}  // namespace
}  // namespace stepgate
