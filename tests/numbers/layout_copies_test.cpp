// SPDX-License-Identifier: MIT
// Copies of what convolutions make, to NCHW and back, leave all numbers of a step as they are, to
// the bit. Host references carry out the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kernels/kernels.h"
#include "tests/numbers/equal_steps.h"
#include "tests/numbers/pytorch_resnet.h"

namespace stepgate {
namespace {

Knobs image_knobs(ModelKind kind) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.batch.size = 4;
  if (kind == ModelKind::unet) {
    knobs.model = {.kind = kind, .layers = 1, .image = 8, .width = 8};
    knobs.optim.kind = OptimKind::adamw;
  } else {
    knobs.model = {.kind = kind, .layers = 26, .image = 33, .width = 8, .classes = 7};
    knobs.optim.kind = OptimKind::momentum;
  }
  return knobs;
}

StepPlan plan_with_copies(Knobs knobs, bool copies) {
  knobs.model.layout_copies = copies;
  return plan_with_drawn_norms(knobs, 11);
}

std::string differences(const StepPlan& one, const StepPlan& other) {
  return differences(one, other, {"gradients", "weights", "row losses"});
}

TEST(LayoutCopies, ChangeNoNumber) {
  const auto expect_none = [](const Knobs& knobs, const std::string& words) {
    EXPECT_EQ(differences(plan_with_copies(knobs, false), plan_with_copies(knobs, true)), "")
        << words;
  };
  for (const ModelKind kind : {ModelKind::resnet, ModelKind::unet}) {
    Knobs knobs = image_knobs(kind);
    for (const int every : {0, 1, 2, int{MemoryKnobs::checkpoint_norms}}) {
      knobs.memory.checkpoint_every = every;
      expect_none(knobs, "checkpoints " + std::to_string(every));
    }
  }
  Knobs knobs = image_knobs(ModelKind::resnet);
  knobs.batch.accumulate = 2;
  expect_none(knobs, "in parts");
  knobs.launch.fuse = Fuse::none;
  expect_none(knobs, "in parts, nothing fused");
}

// The copy back would else be of an image before.
TEST(LayoutCopies, AreNoticedWhereOneOfThemIsMissing) {
  const auto expect_noticed = [](ModelKind kind, std::initializer_list<const char*> names) {
    const StepPlan right = plan_with_copies(image_knobs(kind), true);
    for (const std::string name : names) {
      StepPlan without = right;
      without.operations.erase(operation_named(without, name + ": to NCHW"));
      EXPECT_NE(differences(right, without), "") << name;
    }
  };
  expect_noticed(ModelKind::resnet, {"conv1", "layer1.0.downsample.0", "layer2.1.conv2",
                                     "layer4.1.conv3: gradient", "conv1: gradient"});
  expect_noticed(ModelKind::unet, {"conv_in", "down_blocks.1.resnets.0.conv2", "conv_out: gradient",
                                   "up_blocks.0.resnets.0.conv_shortcut.weight",
                                   "up_blocks.0.resnets.0.conv_shortcut.weight: gradient"});
}

TEST(LayoutCopies, AreNoticedWhereTheyTakeImagesForOneAnother) {
  const StepPlan right = plan_with_copies(image_knobs(ModelKind::resnet), true);
  StepPlan wrong = right;
  auto& shape = launch_named(wrong, "layer3.0.conv1: to NHWC")->shape;
  const auto [images, rows, columns] = shape.as<kernels::ChangeLayout>();
  shape = kernels::ChangeLayout::Shape{images, columns, rows};
  EXPECT_NE(differences(right, wrong), "");
}

}  // namespace
}  // namespace stepgate
