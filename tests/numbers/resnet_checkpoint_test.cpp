// SPDX-License-Identifier: MIT
// Compares a ResNet's steps with checkpoints with those that keep everything, to the bit. Host
// references carry out both.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "scenario/resnet_blocks.h"
#include "tests/numbers/pytorch_resnet.h"
#include "tests/numbers/step_by_hand.h"

namespace stepgate {
namespace {

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

bool equal_to_the_bit(std::span<const float> one, std::span<const float> other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size_bytes()) == 0;
}

// The tensors that differ after two steps.
std::string differences(const StepPlan& one, const StepPlan& other) {
  StepByHand first(one), second(other);
  for (int step = 0; step < 2; ++step) {
    first.step();
    second.step();
  }
  std::string names;
  for (const std::string name : {"gradients", "weights", "running statistics", "row losses"})
    if (!equal_to_the_bit(first.numbers(name), second.numbers(name))) names += name + "; ";
  return names;
}

TEST(ResnetCheckpoints, ChangeNoNumber) {
  for (const std::int64_t every : {1, 2, 3, 4}) {
    for (const ModelStem stem : {ModelStem::imagenet, ModelStem::cifar}) {
      EXPECT_EQ(differences(plan_with_checkpoints(0, stem), plan_with_checkpoints(every, stem)), "")
          << every;
    }
  }
  EXPECT_EQ(differences(plan_with_checkpoints(0, ModelStem::imagenet, 2),
                        plan_with_checkpoints(2, ModelStem::imagenet, 2)),
            "")
      << "in parts";
  for (const ModelStem stem : {ModelStem::imagenet, ModelStem::cifar}) {
    EXPECT_EQ(differences(plan_with_checkpoints(0, stem, 2, Fuse::none),
                          plan_with_checkpoints(2, stem, 2, Fuse::none)),
              "")
        << "nothing fused";
  }
}

std::vector<Operation>::iterator operation_named(StepPlan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.operations, name, &Operation::name);
  EXPECT_NE(found, plan.operations.end()) << name;
  return found;
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
  StepPlan without_relu = right;
  launch_named(without_relu, "again: layer3.1.conv1: norm")->attributes =
      kernels::BatchNormApply::Attributes{.relu = false};
  EXPECT_NE(differences(right, without_relu), "");
}

}  // namespace
}  // namespace stepgate
