// SPDX-License-Identifier: MIT
// Compares a UNet's steps with checkpoints with those that keep everything, to the bit. Host
// references carry out both.
#include <gtest/gtest.h>

#include <string>

#include "kernels/kernels.h"
#include "plan/compose/build_step_plan.h"
#include "tests/numbers/equal_steps.h"

namespace stepgate {
namespace {

constexpr std::int64_t norms = MemoryKnobs::checkpoint_norms;

// With two blocks in each level, the middle and the first level of the decoder are 6 layers without
// a skip among their results.
StepPlan plan_with_checkpoints(std::int64_t every, std::int64_t layers = 2,
                               DType dtype = DType::fp32, std::int64_t width = 8) {
  Scenario scenario;
  scenario.name = "unet";
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {
      .kind = ModelKind::unet, .layers = layers, .dtype = dtype, .image = 8, .width = width};
  knobs.batch.size = 2;
  knobs.optim.kind = OptimKind::adamw;
  knobs.memory.checkpoint_every = every;
  scenario.variants = {{.name = "only", .knobs = knobs, .place = {}}};
  StepPlan plan = build_step_plans(scenario, 11).front();
  // Norms begin with equal numbers, which could be taken from one another, so they are drawn.
  for (Buffer& buffer : plan.buffers) {
    if (buffer.purpose != Purpose::weights) continue;
    for (ContentPart& part : buffer.parts) {
      if (part.scale == 0) part.scale = 0.1;
    }
  }
  return plan;
}

std::string differences(const StepPlan& one, const StepPlan& other) {
  return differences(one, other, {"gradients", "weights", "row losses"});
}

TEST(UnetCheckpoints, ChangeNoNumber) {
  for (const std::int64_t layers : {1, 2}) {
    for (const int every : {int{norms}, 1, 2, 3, 4, 16})
      EXPECT_EQ(differences(plan_with_checkpoints(0, layers), plan_with_checkpoints(every, layers)),
                "")
          << layers << " layers, " << every;
  }
}

// A width of 32 has heads of 64 channels, whose attention is fused in 16 bits.
TEST(UnetCheckpoints, ChangeNoNumberWhereAttentionIsFused) {
  const auto plan = [](int every) { return plan_with_checkpoints(every, 1, DType::bf16, 32); };
  for (const int every : {int{norms}, 1, 3}) EXPECT_EQ(differences(plan(0), plan(every)), "");
  StepPlan without = plan(1);
  without.operations.erase(operation_named(without, "again: mid_block.attentions.0: attention"));
  EXPECT_NE(differences(plan(0), without), "");
}

// The last segment alone could do without: its forward pass left what its backward pass reads.
TEST(UnetCheckpoints, AreNoticedWhereTheyRecomputeNothingOrSomethingElse) {
  const auto expect_noticed = [](std::int64_t every, std::initializer_list<const char*> names) {
    const StepPlan right = plan_with_checkpoints(every);
    for (const char* const name : names) {
      StepPlan without = right;
      without.operations.erase(operation_named(without, name));
      EXPECT_NE(differences(right, without), "") << name;
    }
  };
  expect_noticed(
      1,
      {"again: down_blocks.0.resnets.0.norm1", "again: up_blocks.0.resnets.1.conv1",
       "again: mid_block.resnets.0.conv1: bias and time",
       "again: down_blocks.2.attentions.0: split heads", "again: mid_block.attentions.0: softmax",
       "again: up_blocks.1.attentions.1: merge heads", "again: up_blocks.0.upsamplers.0"});
  expect_noticed(
      3, {"again: mid_block.resnets.0.conv2", "again: mid_block.attentions.0.to_out.0.weight",
          "again: up_blocks.2.resnets.1.conv_shortcut.weight of the skip",
          "again: up_blocks.2.resnets.1.conv2: bias and shortcut"});
  expect_noticed(norms,
                 {"again: down_blocks.3.resnets.1.norm1", "again: up_blocks.1.resnets.0.norm2",
                  "again: up_blocks.1.attentions.1.group_norm"});
}

TEST(UnetCheckpoints, AreNoticedWhereANormIsAppliedToAnotherImage) {
  StepPlan other = plan_with_checkpoints(norms);
  auto& launch =
      std::get<LaunchKernel>(operation_named(other, "again: up_blocks.2.resnets.0.norm1")->action);
  launch.operands[1] = launch.operands[0];  // the skip
  EXPECT_NE(differences(plan_with_checkpoints(norms), other), "");
}

}  // namespace
}  // namespace stepgate
