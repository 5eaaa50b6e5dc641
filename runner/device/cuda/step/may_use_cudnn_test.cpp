// SPDX-License-Identifier: MIT
// Tests which plans depend on cuDNN: another version of it must not make other plans incomparable.
#include "device/cuda/step/may_use_cudnn.h"

#include <gtest/gtest.h>

#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

bool depends(void (*change)(Knobs&)) {
  Knobs knobs = small_transformer();
  change(knobs);
  return may_use_cudnn(plan_of(knobs));
}

TEST(MayUseCudnn, IsTrueOfAttentionOf16BitNumbersInWholeTiles) {
  EXPECT_TRUE(depends([](Knobs&) {}));
  EXPECT_TRUE(depends([](Knobs& knobs) { knobs.model.dtype = DType::fp16; }));
  EXPECT_TRUE(depends([](Knobs& knobs) { knobs.launch.via = LaunchVia::graph; }));
}

TEST(MayUseCudnn, IsTrueOfTheForwardPassWhereOnlyTheGradientHasNoWorkspace) {
  EXPECT_TRUE(depends([](Knobs& knobs) { knobs.model.attention_workspace_bytes = 0; }));
}

TEST(MayUseCudnn, IsTrueOfSumsInEitherOrder) {
  EXPECT_TRUE(depends([](Knobs& knobs) { knobs.launch.attention_sums = AttentionSums::any; }));
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

StepPlan planned_resnet() {
  Knobs knobs = small_mlp();
  knobs.model = {.kind = ModelKind::resnet, .layers = 14};
  knobs.optim.kind = OptimKind::momentum;
  return plan_of(knobs);
}

TEST(NeedsCudnn, IsTrueOfConvolutionsAlone) {
  EXPECT_TRUE(may_use_cudnn(planned_resnet()));
  EXPECT_TRUE(needs_cudnn(planned_resnet()));
  EXPECT_FALSE(needs_cudnn(plan_of(small_transformer())));
}

TEST(NeedsCudnn, IsRefusedWithTheFactAndTheWayOut) {
  EXPECT_EQ(refusal_without_cudnn("no cuDNN was found (libcudnn.so.9: no such file); "
                                  "STEPGATE_CUDNN may name another library"),
            "convolutions on a GPU are cuDNN's, and no cuDNN was found (libcudnn.so.9: no such "
            "file); STEPGATE_CUDNN may name another library; install cuDNN 9, or say --device "
            "simulated");
}

}  // namespace
}  // namespace stepgate
