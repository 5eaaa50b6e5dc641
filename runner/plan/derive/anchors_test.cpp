// SPDX-License-Identifier: MIT
// Tests which anchor a step gets. tests/contract/anchors_test.cpp checks that anchors never change.
#include "plan/derive/anchors.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"

namespace stepgate {
namespace {

StepPlan plan_to_anchor(const Knobs& knobs) {
  Scenario scenario;
  scenario.name = "anchored";
  scenario.variants.push_back({.name = "only", .knobs = knobs, .place = {}});
  return build_step_plans(scenario, 3).front();
}

TEST(Anchors, AreWhatTheirNamesSay) {
  std::set<std::string_view> names;
  for (const AnchorRow& row : anchor_table()) {
    EXPECT_EQ(bottleneck_of(anchor_plan(row)), row.bottleneck) << row.name;
    EXPECT_EQ(anchor_of(anchor_plan(row)), row.name);
    names.insert(row.name);
  }
  EXPECT_EQ(names.size(), anchor_table().size());
}

TEST(Anchors, FollowTheDtypeOfLargeProducts) {
  Knobs knobs;
  knobs.model.hidden = 4096;
  knobs.batch.size = 2048;
  EXPECT_EQ(anchor_of(plan_to_anchor(knobs)), "gemm_fp32.1");
  knobs.model.dtype = DType::tf32;
  EXPECT_EQ(anchor_of(plan_to_anchor(knobs)), "gemm_tf32.1");
  knobs.model.dtype = DType::bf16;
  EXPECT_EQ(anchor_of(plan_to_anchor(knobs)), "gemm_bf16.1");
}

TEST(Anchors, FollowWhatTheHostDoesInASmallStep) {
  Knobs knobs;
  knobs.model.hidden = 128;
  EXPECT_EQ(anchor_of(plan_to_anchor(knobs)), "launch.1");
}

TEST(Anchors, FollowTheMemoryThatALargeBatchIsCopiedFrom) {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::spin, .kernels = 2, .kernel_us = 1};
  knobs.batch = {.size = 64, .sample_bytes = 1 << 20, .tensors = 1};
  knobs.transfer.host = HostMemory::pinned;
  EXPECT_EQ(anchor_of(plan_to_anchor(knobs)), "h2d_pinned.1");
  knobs.transfer.host = HostMemory::pageable;
  EXPECT_EQ(anchor_of(plan_to_anchor(knobs)), "h2d_pageable.1");
  knobs.transfer.host = HostMemory::pin_each_step;  // pinning costs more than the copy
  EXPECT_EQ(anchor_of(plan_to_anchor(knobs)), "launch.1");
}

// The copy of the batch takes longer than all GEMMs together, and longer than all other kernels
// together, but not longer than both.
Knobs copied_meanwhile() {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::mlp, .layers = 4, .hidden = 1024, .dtype = DType::tf32};
  knobs.batch.size = 1024;
  knobs.transfer.host = HostMemory::pinned;
  knobs.transfer.stream = CopyStream::side;
  knobs.transfer.buffers = 2;
  return knobs;
}

TEST(Anchors, AreNotOfCopiesThatHideBehindKernels) {
  EXPECT_NE(anchor_of(plan_to_anchor(copied_meanwhile())), "h2d_pinned.1");
  Knobs in_turn = copied_meanwhile();
  in_turn.transfer.stream = CopyStream::compute;
  in_turn.transfer.buffers = 1;
  EXPECT_EQ(anchor_of(plan_to_anchor(in_turn)), "h2d_pinned.1");
}

TEST(Anchors, AreOfCopiesThatTakeLongerThanWhatTheyHideBehind) {
  Knobs knobs = copied_meanwhile();
  knobs.batch.sample_bytes = 1 << 16;
  EXPECT_EQ(anchor_of(plan_to_anchor(knobs)), "h2d_pinned.1");
}

TEST(Anchors, CountWaitsOfTheHostAgainstWhatTheyWaitFor) {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::mlp, .layers = 2, .hidden = 4096, .dtype = DType::tf32};
  knobs.batch.size = 2048;
  knobs.sync.where = SyncWhere::op;
  EXPECT_EQ(anchor_of(plan_to_anchor(knobs)), "gemm_tf32.1");
}

TEST(Anchors, StandBehindThePlansOnceEach) {
  Knobs small;
  small.model.hidden = 64;
  Knobs large;
  large.model.hidden = 4096;
  large.batch.size = 2048;
  const std::vector<PlannedStep> steps = with_anchors(with_facts(
      std::vector<StepPlan>{plan_to_anchor(large), plan_to_anchor(small), plan_to_anchor(small)}));
  ASSERT_EQ(steps.size(), 5U);
  EXPECT_EQ(steps[0].facts().anchor, "gemm_fp32.1");
  EXPECT_EQ(steps[2].facts().anchor, "launch.1");
  EXPECT_EQ(steps[2]->variant, "only");
  EXPECT_EQ(steps[3]->variant, anchor_variant("gemm_fp32.1"));
  EXPECT_EQ(steps[4]->variant, "anchor.launch.1");
}

}  // namespace
}  // namespace stepgate
