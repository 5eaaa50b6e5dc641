// SPDX-License-Identifier: MIT
// Compares a ResNet's steps with checkpoints with those that keep everything, to the bit. Host
// references carry out both.
#include <gtest/gtest.h>

#include <string>

#include "kernels/kernels.h"
#include "scenario/resnet_blocks.h"
#include "tests/numbers/equal_steps.h"
#include "tests/numbers/pytorch_resnet.h"

namespace stepgate {
namespace {

constexpr std::int64_t norms = MemoryKnobs::checkpoint_norms;

// Stages have 3, 4, 6 and 3 blocks, so that their last segments are shorter than others.
StepPlan plan_with_checkpoints(std::int64_t every, ModelStem stem = ModelStem::imagenet,
                               std::int64_t parts = 1, Fuse fuse = Fuse::pointwise) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.kind = ModelKind::resnet;
  knobs.model.layers = usual_resnet_layers;
  knobs.model.stem = stem;
  knobs.model.width = 8;
  knobs.model.image = stem == ModelStem::cifar ? 9 : 33;
  knobs.model.classes = 7;
  knobs.optim.kind = OptimKind::momentum;
  knobs.batch.size = 2 * parts;
  knobs.batch.accumulate = parts;
  knobs.memory.checkpoint_every = every;
  knobs.launch.fuse = fuse;
  return plan_with_drawn_norms(knobs, 11);
}

std::string differences(const StepPlan& one, const StepPlan& other) {
  return differences(one, other, {"gradients", "weights", "running statistics", "row losses"});
}

TEST(ResnetCheckpoints, ChangeNoNumber) {
  for (const std::int64_t every :
       {norms, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{4}}) {
    for (const ModelStem stem : {ModelStem::imagenet, ModelStem::cifar}) {
      EXPECT_EQ(differences(plan_with_checkpoints(0, stem), plan_with_checkpoints(every, stem)), "")
          << every;
    }
  }
  for (const int every : {int{norms}, 2})
    EXPECT_EQ(differences(plan_with_checkpoints(0, ModelStem::imagenet, 2),
                          plan_with_checkpoints(every, ModelStem::imagenet, 2)),
              "")
        << "in parts, " << every;
  for (const ModelStem stem : {ModelStem::imagenet, ModelStem::cifar}) {
    for (const int every : {int{norms}, 2})
      EXPECT_EQ(differences(plan_with_checkpoints(0, stem, 2, Fuse::none),
                            plan_with_checkpoints(every, stem, 2, Fuse::none)),
                "")
          << "nothing fused, " << every;
  }
}

// torch.utils.checkpoint runs a norm's forward pass again, which updates the running statistics a
// second time.
TEST(ResnetCheckpoints, AreNoticedWhereTheyUpdateRunningStatisticsTwice) {
  StepPlan twice = plan_with_checkpoints(1);
  for (const char* const name : {"layer2.1.conv2: sums", "layer2.1.conv2: statistics"}) {
    const Operation again = *operation_named(twice, name);
    twice.operations.insert(operation_named(twice, "again: layer2.1.conv2: norm"), again);
  }
  EXPECT_EQ(differences(plan_with_checkpoints(1), twice), "running statistics; ");
}

// The last segment alone could do without: its forward pass left what its backward pass reads.
TEST(ResnetCheckpoints, AreNoticedWhereTheyRecomputeNothingOrSomethingElse) {
  const StepPlan right = plan_with_checkpoints(2);
  for (const char* const name :
       {"again: layer1.0.conv1", "again: layer1.0.downsample.0", "again: layer3.4.conv2",
        "again: layer2.2.conv3: norm and shortcut", "again: layer3.5.conv3"}) {
    StepPlan without = right;
    without.operations.erase(operation_named(without, name));
    EXPECT_NE(differences(right, without), "") << name;
  }
  const StepPlan of_norms = plan_with_checkpoints(norms);
  for (const char* const name :
       {"again: layer1.0.conv1: norm", "again: layer4.2.conv1: norm", "again: layer3.2.conv2: norm",
        "again: layer1.0.conv3: norm and shortcut", "again: layer3.4.conv3: norm and shortcut"}) {
    StepPlan without = of_norms;
    without.operations.erase(operation_named(without, name));
    EXPECT_NE(differences(of_norms, without), "") << name;
  }
  StepPlan without_relu = right;
  launch_named(without_relu, "again: layer3.1.conv1: norm")->attributes =
      kernels::BatchNormApply::Attributes{.relu = false};
  EXPECT_NE(differences(right, without_relu), "");
}

}  // namespace
}  // namespace stepgate
