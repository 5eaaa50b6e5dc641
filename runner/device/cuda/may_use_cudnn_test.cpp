// SPDX-License-Identifier: MIT
// Which plans depend on cuDNN: a version of it must not make others incomparable.
#include "device/cuda/may_use_cudnn.h"

#include <gtest/gtest.h>

#include "plan/build_step_plan.h"

namespace stepgate {
namespace {

Knobs transformer() {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::transformer, .layers = 1, .hidden = 128, .dtype = DType::bf16};
  knobs.model.heads = 2;
  knobs.model.seq = 128;
  knobs.model.vocab = 72;
  knobs.batch.size = 2;
  return knobs;
}

bool depends(void (*change)(Knobs&)) {
  Scenario scenario;
  scenario.variants.push_back({.name = "only", .knobs = transformer(), .place = {}});
  change(scenario.variants.front().knobs);
  return may_use_cudnn(build_step_plans(scenario, 1).front());
}

TEST(MayUseCudnn, IsTrueOfAttentionOf16BitNumbersInWholeTiles) {
  EXPECT_TRUE(depends([](Knobs&) {}));
  EXPECT_TRUE(depends([](Knobs& knobs) { knobs.model.dtype = DType::fp16; }));
  EXPECT_TRUE(depends([](Knobs& knobs) { knobs.launch.via = LaunchVia::graph; }));
}

TEST(MayUseCudnn, IsTrueOfTheForwardPassWhereOnlyTheGradientHasNoWorkspace) {
  EXPECT_TRUE(depends([](Knobs& knobs) { knobs.model.attention_workspace_bytes = 0; }));
}

TEST(MayUseCudnn, IsFalseOfEveryOtherStep) {
  EXPECT_FALSE(depends([](Knobs& knobs) { knobs.model.dtype = DType::fp32; }));
  EXPECT_FALSE(depends([](Knobs& knobs) { knobs.model.dtype = DType::tf32; }));
  EXPECT_FALSE(depends([](Knobs& knobs) { knobs.model.seq = 120; }));
  EXPECT_FALSE(depends([](Knobs& knobs) {
    knobs.model.hidden = 512;
    knobs.model.heads = 2;  // of 256 columns
  }));
  EXPECT_FALSE(depends([](Knobs& knobs) { knobs.launch.fuse = Fuse::pointwise; }));
  EXPECT_FALSE(depends([](Knobs& knobs) { knobs.launch.fuse = Fuse::none; }));
  EXPECT_FALSE(depends([](Knobs& knobs) { knobs.model.kind = ModelKind::mlp; }));
}

}  // namespace
}  // namespace stepgate
